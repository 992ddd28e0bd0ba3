"""A column that is loaded has its elements in the first lane; who computes with it wants them in all.

Before: a ``load`` of a tile of one column that element-wise operations use. After: a sum over that column between
them, which adds nothing to it, and is in all lanes.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, uses
from sley.runtime.tile.passes.chains import ELEMENTWISE
from sley.runtime.tile.types import TileType


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
    type = op.result.type
    assert isinstance(type, TileType)
    place, value = block.ops.index(op) + 1, op.result
    if type.dtype is ElementType.BF16:
        wide = Op(
            "cast", [value], {"dtype": ElementType.FP32}, [Value(TileType(ElementType.FP32, type.shape))], line=op.line
        )
        block.ops.insert(place, wide)
        place, value = place + 1, wide.result
    everywhere = Op("reduce", [value], {"kind": "sum", "axis": 1}, [Value(value.type)], line=op.line)
    block.ops.insert(place, everywhere)
    for user in users:
        if user.name == "cast" and type.dtype is ElementType.BF16 and user.attributes["dtype"] is ElementType.FP32:
            for other in function.body.walk():
                other.operands = [everywhere.result if o is user.result else o for o in other.operands]
        elif type.dtype is not ElementType.BF16:
            user.operands = [everywhere.result if o is op.result else o for o in user.operands]
