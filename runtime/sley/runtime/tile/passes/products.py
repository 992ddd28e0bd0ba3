"""What of ``dot`` the array cannot do, and how its second operand must lie."""

from __future__ import annotations

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.tile.ir import Function, Value, tile_shape, tile_type, uses
from sley.runtime.tile.operations import LOADS, TileError


def check_products(function: Function, config: ChipConfig) -> None:
    """Raises ``TileError`` if lanes behind K are not zero: those of a tile that is loaded with the fill value 0 are."""
    makers = {result: op for op in function.body.walk() for result in op.results}
    for op in function.body.walk():
        if op.name != "dot":
            continue
        a = op.operands[0]
        dtype, (rows, depth) = tile_type(a).dtype, tile_shape(a)
        if not config.has(dtype):
            raise TileError(f"line {op.line}: the chip {config.name} does not multiply {dtype.info.name}")
        maker = makers.get(a)
        zero = maker is not None and maker.name in LOADS and maker.attributes["fill"] == 0
        if depth % config.fold_depth(dtype) and not zero:
            raise TileError(
                f"line {op.line}: dot with a first tile of {rows} x {depth} that is computed; its columns must be a "
                f"multiple of {config.fold_depth(dtype)} on the chip {config.name}"
            )


def interleaved(function: Function) -> frozenset[Value]:
    """Second operands of int8, whose rows Load interleaves. Raises ``TileError`` for one that is not loaded, or that
    something else uses."""
    makers = {result: op for op in function.body.walk() for result in op.results}
    used, found = uses(function.body), set()
    for op in function.body.walk():
        if op.name != "dot" or tile_type(op.operands[1]).dtype is not ElementType.INT8:
            continue
        b = op.operands[1]
        alone = all(user.name == "dot" and b is user.operands[1] and b is not user.operands[0] for user in used[b])
        if b not in makers or makers[b].name not in LOADS or makers[b].attributes["fill"] != 0 or not alone:
            raise TileError(
                f"line {op.line}: dot with a second tile of int8 that is computed, carried by a loop, filled with "
                "other than 0, or used by something else; load it for this dot"
            )
        found.add(b)
    return frozenset(found)
