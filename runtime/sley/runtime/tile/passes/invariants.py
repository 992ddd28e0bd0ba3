"""What a loop loads anew in each round, the same each time, is loaded once, in front of it.

Before: a load in a loop, of an array that nothing is stored to, from a place that does not depend on the loop's
variable: of a product of one block of columns, the weights; of a norm, its factors. After: the load in front of the
loop, with the indices that it takes. A tile is then kept for all rounds, so nothing is moved where tiles of one slot
each have no room beside each other.
"""

from __future__ import annotations

from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.operations import STORES
from sley.runtime.tile.types import INDEX


def hoist_invariants(function: Function) -> None:
    """Runs the pass, in place."""
    stored = {op.operands[0] for op in function.body.walk() if op.name in STORES}
    _visit(function.body, stored)


def _visit(block: Block, stored: set[Value]) -> None:
    """Innermost loops first: what leaves one may leave the next one around it, too."""
    ops: list[Op] = []
    for op in block.ops:
        if op.body is not None:
            _visit(op.body, stored)
            ops += _taken(op.body, stored)
        ops.append(op)
    block.ops = ops


def _taken(body: Block, stored: set[Value]) -> list[Op]:
    """Takes loads that are the same in each round out of a loop's body, and the indices that they take."""
    makers = {result: op for op in body.walk() for result in op.results}
    inside = {*body.parameters, *makers}
    taken: dict[Op, None] = {}

    def follow(value: Value) -> list[Op] | None:
        """The operations of the body that make an index, operands first; none if it changes from round to round."""
        if value not in inside:
            return []
        op = makers.get(value)
        if op is None or op not in body.ops or any(result.type != INDEX for result in op.results):
            return None
        found: list[Op] = []
        for operand in op.operands:
            before = follow(operand)
            if before is None:
                return None
            found += before
        return [*found, op]

    for op in body.ops:
        if op.name != "load" or op.operands[0] in stored:
            continue
        made = [follow(index) for index in op.operands[1:]]
        if all(ops is not None for ops in made):
            taken |= dict.fromkeys([before for ops in made if ops for before in ops])
            taken[op] = None
    body.ops = [op for op in body.ops if op not in taken]
    return list(taken)
