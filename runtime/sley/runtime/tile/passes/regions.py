"""How the elements of a tile lie in memory: what of it is a run for Load and Store."""

from __future__ import annotations

from sley.abi.config import ChipConfig
from sley.abi.instructions import INTERLEAVE_CHUNKS
from sley.abi.parameters import PARAMS, Param
from sley.runtime.tile.ir import Op, tile_shape
from sley.runtime.tile.operations import LOADS
from sley.runtime.tile.passes.chains import in_scratchpad
from sley.runtime.tile.types import ArrayType


def array_of(op: Op) -> ArrayType:
    """The type of the array of a ``load`` or ``store``."""
    type = op.operands[0].type
    assert isinstance(type, ArrayType)
    return type


def shape_of(op: Op) -> tuple[int, int]:
    """Rows and columns of the tile of a ``load`` or ``store``."""
    return tile_shape(op.result if op.name in LOADS else op.operands[-1])


def contiguous(array: ArrayType, axis: int | None, size: int) -> bool:
    """Whether ``size`` elements along an axis are one behind the other, which one element is."""
    return size == 1 or axis is None or array.shape[axis] == 1 or array.strides[axis] == 1


def in_rows(op: Op) -> bool:
    """Whether the rows of the tile of a ``load`` or ``store`` are contiguous in memory, as the chip has them."""
    return contiguous(array_of(op), op.attributes["axes"][1], shape_of(op)[1])


def in_columns(op: Op) -> bool:
    """Whether the columns are."""
    return contiguous(array_of(op), op.attributes["axes"][0], shape_of(op)[0])


def transposed(op: Op) -> bool:
    """Whether Load transposes the tile of a ``load`` or ``gather`` on its way to the scratchpad."""
    if op.name not in LOADS or not in_scratchpad(array_of(op).dtype):
        return False
    return op.attributes.get("along") == 1 or "everywhere" in op.attributes or (op.name == "load" and not in_rows(op))


def longest_run(op: Op, weights: bool, config: ChipConfig) -> int | None:
    """Bytes of a row that Load or Store takes as one run; none where Load transposes, and takes columns in pieces.
    ``weights``: whether Load interleaves the tile, which is so of int8 where a lane holds two."""
    if transposed(op):
        return None
    most: int = (1 << PARAMS[Param.RUN_BYTES].width) - 1
    together = weights and config.row_bytes > config.array
    return min(most, INTERLEAVE_CHUNKS * config.row_bytes) if together else most
