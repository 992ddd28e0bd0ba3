"""Instructions of the vector unit that join each row of a tile with one before it."""

from __future__ import annotations

from functools import partial

from sley.abi.faults import Unit
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import JOIN
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.emit.rows import for_chunks
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.operations import REDUCTIONS
from sley.runtime.tile.passes.placement import chunks


def emit_join(room: Room, op: Op) -> None:
    """The first rows are copied, as many as the distance; those behind are joined."""
    k, (source,), distance = room.k, op.operands, op.attributes["distance"]
    type, rows = tile_type(op.result), tile_shape(op.result)[0]
    joined = Chain(binary=JOIN[REDUCTIONS[op.attributes["kind"]]], binary_operand=Operand.B)
    vector = partial(k.vector, dtype=type.dtype, out=type.dtype)
    room.parameters.set(Unit.VECTOR, a_stride=1, b_stride=1, out_stride=1)
    with k.scratch("before a out") as (before, a, out):
        room.row(source, before)
        room.row(op.result, out)

        def body(chunk: int) -> None:
            vector(before, out, distance, chain=room.chain(Chain()))
            room.parameters.set(Unit.VECTOR, b_row=before)
            k.add(a, before, distance)
            k.add(out, out, distance)
            vector(a, out, rows - distance, chain=room.chain(joined))
            k.add(before, before, rows)
            k.add(out, out, rows - distance)

        for_chunks(room, chunks(type, room.config), 1, body)
