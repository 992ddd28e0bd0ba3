"""Instructions of the vector unit that move a tile of bf16 as it is."""

from __future__ import annotations

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.passes.placement import chunks

HALVES = 2
"""Of a row of bf16: it is two rows of int8, which no conversion changes."""


def emit_copy(room: Room, op: Op) -> None:
    """All rows, one half after the other."""
    k, (source,) = room.k, op.operands
    rows = tile_shape(source)[0] * chunks(tile_type(source), room.config)
    room.parameters.set(Unit.VECTOR, a_stride=1, out_stride=1)
    with k.scratch("a out") as (a, out):
        room.row(source, a)
        room.row(op.result, out)
        for half in range(HALVES):
            k.vector(
                a,
                out,
                rows,
                a_space=Space.SCRATCHPAD,
                a_type=ElementType.INT8,
                a_half=half,
                out=ElementType.INT8,
                out_half=half,
            )
