"""Between which numbers each index is, from the grid and the loops around it."""

from __future__ import annotations

from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape
from sley.runtime.tile.operations import INDEX_OPS, LOADS, STORES, TileError
from sley.runtime.tile.types import ArrayType

Range = tuple[int, int]
"""The least and the largest."""


def index_ranges(function: Function) -> dict[Value, Range]:
    """The range of each index. What a loop carries is unknown, and has the whole range of 32 bits."""
    found: dict[Value, Range] = {}
    _block(function, function.body, found)
    return found


def _block(function: Function, block: Block, found: dict[Value, Range]) -> None:
    for op in block.ops:
        if op.name == "const":
            found[op.result] = (op.attributes["value"],) * 2
        elif op.name == "block":
            found[op.result] = (0, function.grid[op.attributes["axis"]] - 1)
        elif op.name in INDEX_OPS:
            a, b = (found[operand] for operand in op.operands)
            corners = [INDEX_OPS[op.name](x, y) for x in a for y in b]
            found[op.result] = (min(corners), max(corners))
        elif op.body is not None:
            lower, step, count = (op.attributes[name] for name in ("lower", "step", "count"))
            ends = (lower, lower + step * (count - 1))
            found[op.body.parameters[0]] = (min(ends), max(ends))
            unknown = (-(1 << 31), (1 << 31) - 1)
            found |= dict.fromkeys((*op.body.parameters[1:], *op.results), unknown)
            _block(function, op.body, found)


def check_places(function: Function, ranges: dict[Value, Range]) -> None:
    """Raises ``TileError`` for a load or store that may be outside of its array, and for a part outside of its tile."""
    for op in function.body.walk():
        if op.name == "part":
            _check_part(op, ranges)
        if op.name not in (*LOADS, *STORES):
            continue
        array = op.operands[0]
        assert isinstance(array.type, ArrayType)
        for axis, (index, size) in enumerate(zip(op.operands[1:], array.type.shape, strict=False)):
            low, high = ranges[index]
            if low < 0 or high >= size:
                raise TileError(
                    f"line {op.line}: {op.name} of {array.name} at {low} to {high} along axis {axis}, which has {size} "
                    "elements; a tile begins inside of its array: use a smaller grid, or fewer rounds"
                )


def _check_part(op: Op, ranges: dict[Value, Range]) -> None:
    whole, number = op.operands
    axis, (low, high) = op.attributes["axis"], ranges[number]
    count = tile_shape(whole)[axis] // op.attributes["shape"][axis]
    if low < 0 or high >= count:
        raise TileError(f"line {op.line}: part {low} to {high} of a tile that has 0 to {count - 1}")
