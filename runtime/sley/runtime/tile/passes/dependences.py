"""In whose rounds each index changes: those of loops, and of the axes of the grid."""

from __future__ import annotations

from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.types import INDEX

Rounds = frozenset[Op | int]


def index_dependences(function: Function) -> dict[Value, Rounds]:
    """Loops and axes by indices; what a loop carries, and leaves, changes in its rounds."""
    found: dict[Value, Rounds] = {}

    def visit(block: Block) -> None:
        for op in block.ops:
            if op.name == "block":
                found[op.result] = frozenset({op.attributes["axis"]})
            elif op.body is not None:
                found.update(dict.fromkeys((*op.body.parameters, *op.results), frozenset({op})))
                visit(op.body)
            elif op.results and op.result.type == INDEX:
                found[op.result] = frozenset[Op | int]().union(*(found[value] for value in op.operands))

    visit(function.body)
    return found
