"""In whose rounds each index changes: those of loops, and of the axes of the grid."""

from __future__ import annotations

from sley.runtime.tile.ir import Function, Op, Value
from sley.runtime.tile.types import INDEX

Changes = frozenset[Op | int]


def index_dependences(function: Function) -> dict[Value, Changes]:
    """Loops and axes by indices. What a loop carries, and leaves, changes in its rounds, and with what it begins with
    and goes on with."""
    found: dict[Value, Changes] = {}

    def of(*values: Value) -> Changes:
        return frozenset[Op | int]().union(*(found.get(value, frozenset()) for value in values))

    before = -1
    while before != (before := sum(map(len, found.values()))):  # what is carried comes around
        for op in function.body.walk():
            if op.name == "block":
                found[op.result] = frozenset({op.attributes["axis"]})
            elif op.body is not None:
                variable, *carried = op.body.parameters
                found[variable] = frozenset({op})
                ends = op.body.ops[-1].operands
                for inside, behind, *values in zip(carried, op.results, op.operands, ends, strict=True):
                    if inside.type == INDEX:
                        found[inside] = found[behind] = frozenset({op}) | of(*values)
            elif op.results and op.result.type == INDEX:
                found[op.result] = of(*op.operands)
    return found
