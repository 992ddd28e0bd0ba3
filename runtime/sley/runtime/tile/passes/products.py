"""What of ``dot`` the array cannot do."""

from __future__ import annotations

from sley.abi.config import ChipConfig
from sley.runtime.tile.ir import Function, tile_shape
from sley.runtime.tile.operations import TileError


def check_products(function: Function, config: ChipConfig) -> None:
    """Raises ``TileError`` if lanes behind K are not zero: those of a tile that is loaded with the fill value 0 are."""
    makers = {result: op for op in function.body.walk() for result in op.results}
    for op in function.body.walk():
        if op.name != "dot":
            continue
        rows, depth = tile_shape(op.operands[0])
        maker = makers.get(op.operands[0])
        zero = maker is not None and maker.name == "load" and maker.attributes["fill"] == 0
        if depth % config.array and not zero:
            raise TileError(
                f"line {op.line}: dot with a first tile of {rows} x {depth} that is computed; its columns must be a "
                f"multiple of {config.array} on the chip {config.name}"
            )
