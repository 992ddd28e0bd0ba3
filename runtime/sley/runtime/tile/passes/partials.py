"""Partial results of reductions along rows: how many there are, and which chunks are read two at a time."""

from __future__ import annotations

from sley.abi.config import ChipConfig
from sley.abi.vector.operations import chunk_partials
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.passes.chains import in_scratchpad

PAIRED = 4
"""Chunks of a tile from which on two of them are read at the same time, where the order is free."""
HIDING = 32
"""Rows of an instruction that hide the time until the next one may need what it writes."""


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
        return 1 if rows >= HIDING else min(published, 1 << (columns // config.array // 2).bit_length() - 1)
    return published if rows >= HIDING else 1
