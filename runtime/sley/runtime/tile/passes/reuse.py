"""Results of element-wise operations in the rows of an operand that nobody needs any more.

An instruction reads a row before it writes it, so a result may be where an operand of its shape and type was. That
saves rows of the accumulators, and costs time where another unit would fill the operand's rows meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping

from sley.abi.instructions import Space
from sley.runtime.tile.ir import Block, Op, Value, uses
from sley.runtime.tile.passes.buffers import Buffer


class Reuse:
    """Of the operations of one block, which is the body of ``loop``, and of which the values are in ``of``."""

    def __init__(self, block: Block, loop: Op | None, of: Mapping[Value, Buffer]) -> None:
        self._loop, self._of = loop, of
        self._numbers: dict[Op, int] = {}
        for number, op in enumerate(block.ops):
            self._numbers |= dict.fromkeys([op, *(op.body.walk() if op.body is not None else ())], number)
        self._last = {value: max(self._numbers[op] for op in users) for value, users in uses(block).items()}

    def place(self, op: Op) -> Buffer | None:
        """The buffer of an operand that the result of a chain can be in: one of this block, none of whose values is
        used behind the operation."""
        if op.name != "chain":
            return None
        for operand in op.operands:
            buffer = self._of.get(operand)
            if buffer is None or buffer.loop is not self._loop or buffer.space is not Space.ACCUMULATOR:
                continue
            inside = [value for value, other in self._of.items() if other is buffer]
            if operand.type == op.result.type and all(self._last.get(v, -1) <= self._numbers[op] for v in inside):
                return buffer
        return None
