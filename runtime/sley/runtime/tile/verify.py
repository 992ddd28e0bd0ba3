"""Whether a function of the tile IR is well formed; every pass is followed by this."""

from __future__ import annotations

from sley.runtime.tile.ir import Block, Function, Value
from sley.runtime.tile.operations import TileError, result_types


def verify(function: Function) -> None:
    """Raises ``TileError`` for a value that is used before it has one, and for an operation that means nothing."""
    _block(function.body, set(function.arrays))


def _block(block: Block, known: set[Value]) -> None:
    known = known | set(block.parameters)
    for op in block.ops:
        where = f"line {op.line}: " if op.line else ""
        if not known.issuperset(op.operands):
            raise TileError(f"{where}an operand of {op.name} has no value yet")
        if op.body is not None:
            _block(op.body, known)
        types = result_types(op)
        if types != [result.type for result in op.results]:
            raise TileError(f"{where}results of {op.name} are {', '.join(map(str, types)) or 'none'}")
        known.update(op.results)
