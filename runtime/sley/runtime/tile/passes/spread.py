"""A column that is loaded has its elements in the first lane; who computes with it wants them in all.

Before: a ``load`` of a tile of one column that element-wise operations use. After: a sum over that column between
them, which adds nothing to it, and is in all lanes.
"""

from __future__ import annotations

from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type, uses
from sley.runtime.tile.passes.chains import ELEMENTWISE
from sley.runtime.tile.types import TileType, wide


def spread_columns(function: Function) -> None:
    """Runs the pass, in place."""
    _block(function.body, function)


def _block(block: Block, function: Function) -> None:
    for op in list(block.ops):
        if op.body is not None:
            _block(op.body, function)
        elif op.name == "load" and tile_shape(op.result)[1] == 1:
            _column(op, block, function)


def _column(op: Op, block: Block, function: Function) -> None:
    users = [user for user in uses(function.body)[op.result] if user.name in ELEMENTWISE]
    if not users:
        return
    type = tile_type(op.result)
    place, value = block.ops.index(op) + 1, op.result
    if wide(type.dtype) is not type.dtype:
        dtype = wide(type.dtype)
        value = Value(TileType(dtype, type.shape))
        block.ops.insert(place, Op("cast", [op.result], {"dtype": dtype}, [value], line=op.line))
        place += 1
    everywhere = Op("reduce", [value], {"kind": "sum", "axis": 1}, [Value(value.type)], line=op.line)
    block.ops.insert(place, everywhere)
    for user in users:
        user.operands = [everywhere.result if operand is op.result else operand for operand in user.operands]
