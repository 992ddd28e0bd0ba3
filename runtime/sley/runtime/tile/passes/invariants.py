"""What is the same in each round of a loop is made once, in front of the loop.

Before: in a loop, a load of an array that nothing is stored to, from a place that does not depend on the loop's
variable, such as the weights of a product with one block of columns; an iota; or a chain that makes a row or a column
of such tiles. After: the operation in front of the loop, with the indices that it takes. A tile is then kept for all
rounds, so it stays if somebody writes where it is, as a loop does that carries it; and all goes back if there is no
room.
"""

from __future__ import annotations

from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, uses
from sley.runtime.tile.operations import STORES
from sley.runtime.tile.types import INDEX


def hoist_invariants(function: Function) -> bool:
    """Runs the pass, in place; whether it changes anything."""
    before = {block: block.ops for block in function.body.blocks()}
    _Hoist(function).visit(function.body)
    return any(len(block.ops) != len(ops) for block, ops in before.items())


class _Hoist:
    def __init__(self, function: Function) -> None:
        self._stored = {op.operands[0] for op in function.body.walk() if op.name in STORES}
        self._users = uses(function.body)

    def visit(self, block: Block) -> None:
        """Innermost loops first: what leaves one may leave the next one around it, too."""
        ops: list[Op] = []
        for op in block.ops:
            if op.body is not None:
                self.visit(op.body)
                ops += self._taken(op.body)
            ops.append(op)
        block.ops = ops

    def _taken(self, body: Block) -> list[Op]:
        """Takes what is the same in each round out of a loop's body, operands first."""
        inside = {*body.parameters, *(result for op in body.walk() for result in op.results)}
        makers = {result: op for op in body.ops for result in op.results}
        taken: dict[Op, None] = {}

        def indices(value: Value) -> list[Op] | None:
            """What of the body makes an index, operands first; none if it changes from round to round."""
            op = makers.get(value)
            if value not in inside or op in taken:
                return []
            if op is None or value.type != INDEX or op.body is not None:
                return None
            found: list[Op] = []
            for operand in op.operands:
                before = indices(operand)
                if before is None:
                    return None
                found += before
            return [*found, op]

        for op in body.ops:
            if self._moves(op):
                made = [indices(operand) for operand in op.operands]
                if None not in made:
                    taken |= dict.fromkeys(before for ops in made for before in ops or ())
                    taken[op] = None
        body.ops = [op for op in body.ops if op not in taken]
        return list(taken)

    def _moves(self, op: Op) -> bool:
        """Whether an operation may leave a loop if its operands do."""
        if op.name == "load":
            alike = op.operands[0] not in self._stored
        else:
            alike = op.name == "iota" or (op.name == "chain" and 1 in tile_shape(op.result))
        return alike and not any(writes(user, op.result) for user in self._users.get(op.result, []))


def writes(user: Op, value: Value) -> bool:
    """Whether an operation leaves something else where the value is."""
    return user.name in ("for", "yield") or (user.name == "dot" and value is user.operands[2])
