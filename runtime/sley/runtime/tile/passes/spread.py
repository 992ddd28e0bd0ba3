"""A column that is loaded, or a product, has its elements in the first lane; who computes with it wants them in all.

Before: a ``load`` of a tile of one column that element-wise operations use. After: if its elements are contiguous in
memory, Load makes a column for each lane (bf16, int8), or it is loaded as a row that the vector unit transposes. If
they are not, or it is a product, a ``spread`` is between; a product with a column of a constant has them in all lanes.
"""

from __future__ import annotations

from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type, uses
from sley.runtime.tile.operations import LOADS, result_types
from sley.runtime.tile.passes.chains import ELEMENTWISE
from sley.runtime.tile.passes.regions import in_columns
from sley.runtime.tile.passes.simplify import drop_unused
from sley.runtime.tile.types import TileType, wide


def spread_columns(function: Function) -> None:
    """Runs the pass, in place."""
    _block(function.body, function)
    drop_unused(function)


def _block(block: Block, function: Function) -> None:
    for op in list(block.ops):
        if op.body is not None:
            _block(op.body, function)
        elif (op.name in LOADS or _gives_one_lane(op, block)) and tile_shape(op.result)[1] == 1:
            _column(op, block, function)


def _gives_one_lane(op: Op, block: Block) -> bool:
    """Whether it is a product whose second operand, if it has one column, has that in one lane."""
    return op.name == "dot" and not _everywhere(op.operands[1], block)


def _everywhere(value: Value, block: Block) -> bool:
    """Whether all lanes of a column have its elements: one of a constant has."""
    made = {op.result: op for op in block.ops if op.name in ("full", "cast")}
    while value in made and made[value].name == "cast":
        (value,) = made[value].operands
    return value in made


def _column(op: Op, block: Block, function: Function) -> None:
    everyone = uses(function.body)[op.result]
    users = [user for user in everyone if user.name in ELEMENTWISE]
    if not users:
        return
    type, place = tile_type(op.result), block.ops.index(op) + 1
    narrow = wide(type.dtype) is not type.dtype
    run = op.name == "load" and in_columns(op)
    if run and narrow and users == everyone:
        op.attributes["everywhere"] = True
        return
    if run and not narrow:
        row = Op("load", list(op.operands), dict(op.attributes), line=op.line)
        row.attributes |= {name: op.attributes[name][::-1] for name in ("shape", "axes")}
        row.results = [Value(result) for result in result_types(row)]
        made = Op("transpose", [row.result], {}, [Value(type)], line=op.line)
        block.ops[place:place] = [row, made]
    else:
        value = op.result
        if narrow:
            dtype = wide(type.dtype)
            value = Value(TileType(dtype, type.shape))
            block.ops.insert(place, Op("cast", [op.result], {"dtype": dtype}, [value], line=op.line))
            place += 1
        made = Op("spread", [value], {}, [Value(value.type)], line=op.line)
        block.ops.insert(place, made)
    for user in users:
        user.operands = [made.result if operand is op.result else operand for operand in user.operands]
