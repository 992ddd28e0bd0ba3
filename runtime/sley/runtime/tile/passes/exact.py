"""The largest and the smallest of bf16 are bf16.

Before: a ``reduce`` by max or min of a tile that was bf16, as fp32. After: element-wise operations take its result from
bf16, in the scratchpad. No bit changes: joins give zeros for subnormal numbers, and one NaN. An instruction reads one
operand from each memory beside its first one, so a column of the scratchpad leaves the accumulators to another one.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Function, Op, Value, tile_shape, tile_type, uses
from sley.runtime.tile.passes.chains import ELEMENTWISE
from sley.runtime.tile.types import TileType


def keep_exact(function: Function) -> None:
    """Runs the pass, in place."""
    users = uses(function.body)
    makers = {result: op for op in function.body.walk() for result in op.results}
    for block in function.body.blocks():
        for op in list(block.ops):
            if op.name != "reduce" or op.attributes["kind"] == "sum" or tile_type(op.result).dtype is ElementType.INT32:
                continue
            source = makers.get(op.operands[0])
            if source is None or source.name != "cast" or tile_type(source.operands[0]).dtype is not ElementType.BF16:
                continue
            takers = [user for user in users.get(op.result, []) if _element_wise(user, op.result)]
            if not takers:
                continue
            shape, place = tile_shape(op.result), block.ops.index(op) + 1
            values = [Value(TileType(dtype, shape)) for dtype in (ElementType.BF16, ElementType.FP32)]
            for operand, made in zip((op.result, values[0]), values, strict=True):
                block.ops.insert(place, Op("cast", [operand], {"dtype": tile_type(made).dtype}, [made], line=op.line))
                place += 1
            for user in takers:
                user.operands = [values[1] if operand is op.result else operand for operand in user.operands]


def _element_wise(user: Op, value: Value) -> bool:
    return user.name in ELEMENTWISE and tile_shape(user.result) != tile_shape(value)
