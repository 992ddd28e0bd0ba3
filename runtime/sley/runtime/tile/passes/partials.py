"""Partial results of reductions along rows: how many there are, and which chunks are read two at a time."""

from __future__ import annotations

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.abi.vector.operations import chunk_partials
from sley.runtime.tile.ir import Op, Value, tile_shape, tile_type
from sley.runtime.tile.passes.chains import in_scratchpad
from sley.runtime.tile.types import TileType

PAIRED = 4
"""Chunks of a tile from which on two of them are read at the same time, where the order is free."""
HIDING = 32
"""Rows of an instruction that hide the time until the next one may need what it writes."""
SHORT = 16
"""The same, until the next but one may need it, of largest and smallest."""
LOW = 64
"""Rows of an instruction that takes all cycles until the one before has written its rows, whatever it does."""


def reduced_shape(op: Op) -> tuple[int, int]:
    """Of what a ``reduce`` or a ``fold`` reduces."""
    shape: tuple[int, int] = op.attributes["shape"] if op.name == "fold" else tile_shape(op.operands[0])
    return shape


def in_pairs(op: Op, config: ChipConfig) -> bool:
    """Whether a reduction reads two chunks at a time: the largest or smallest of a tile in the scratchpad, as results
    so far are in the other memory."""
    if op.name != "reduce" or op.attributes["kind"] == "sum" or not in_scratchpad(tile_type(op.operands[0]).dtype):
        return False
    return reduced_shape(op)[1] // config.array >= PAIRED


def partials_of(op: Op, config: ChipConfig) -> int:
    """Partial results of a ``reduce`` or a ``fold`` along axis 1. Those of sums are published. Where the order is free
    they are as many as pay: of pairs one if its rows hide the latency; else two, which only then do."""
    rows, columns = reduced_shape(op)
    published = chunk_partials(-(-columns // config.array))
    if op.name != "reduce" or op.attributes["kind"] == "sum":
        return published
    if in_pairs(op, config):
        pairs, partials = columns // config.array // 2, 1 if rows >= HIDING else 2
        while partials > 1 and partials // 2 * rows < SHORT and 2 * partials <= min(published, pairs):
            partials *= 2
        return partials
    return published if rows >= HIDING else 1


def together(op: Op, config: ChipConfig, repeated: bool) -> int:
    """Chunks of a ``fold`` along axis 1 that an instruction takes: those of half of the partial results, so that the
    next one needs the other half; one, if it reads rows or columns again for each. ``repeated``: its column is there as
    often as there are such chunks."""
    partials, shape = partials_of(op, config), op.attributes["shape"]
    lines = [value for value in op.operands if isinstance(value.type, TileType) and tile_shape(value) != shape]
    count = -(-shape[1] // config.array)
    return max(partials // 2, 1) if count % partials == 0 and (repeated or not lines) else 1


def repeated_column(op: Op, config: ChipConfig) -> Value | None:
    """The column that a ``fold`` of few rows reads for each chunk, if an instruction could take several chunks, were it
    there several times; none if there is none, or another such operand."""
    if op.name != "fold" or op.attributes["axis"] == 0:
        return None
    shape = op.attributes["shape"]
    lines = [value for value in op.operands if isinstance(value.type, TileType) and tile_shape(value) != shape]
    chunks = together(op, config, repeated=True)
    if len(lines) != 1 or chunks == 1 or shape[0] >= LOW or tile_shape(lines[0]) != (shape[0], 1):
        return None
    return lines[0]


def put_aside(op: Op, config: ChipConfig, repeated: bool) -> int:
    """Rows of the second half of the partial results of a ``fold`` that reads a column of the accumulators. That is in
    the other bank than all of these results, so that their joins would read one bank for both operands. 0 if there is
    no such column, or instructions do not take half of the results in turn, or few rows."""
    if op.name != "fold" or op.attributes["axis"] == 0:
        return 0
    types = [value.type for value in op.operands if isinstance(value.type, TileType)]
    columns = [type for type in types if type.shape[1] == 1 and not in_scratchpad(type.dtype)]
    partials, (rows, width) = partials_of(op, config), op.attributes["shape"]
    step, chunks = together(op, config, repeated), -(-width // config.array)
    in_turn = 2 * step == partials and chunks % partials == 0 and chunks >= 2 * partials and step * rows >= LOW
    return step * rows if columns and in_turn and all(type.dtype is not ElementType.INT8 for type in types) else 0
