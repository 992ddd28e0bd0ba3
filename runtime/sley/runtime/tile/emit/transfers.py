"""Instructions of Load and Store: a tile and its place in an array."""

from __future__ import annotations

from sley.abi.faults import Unit
from sley.runtime.assembler.operands import Register, Value
from sley.runtime.tile.constants import word
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.passes.placement import chunks, weight_pairs
from sley.runtime.tile.types import ArrayType


def emit_transfer(room: Room, op: Op) -> None:
    """A load or a store: runs are rows, as far as the array has them."""
    k, loads = room.k, op.name == "load"
    array, tile = op.operands[0], op.result if loads else op.operands[-1]
    assert isinstance(array.type, ArrayType)
    buffer, dtype = room.placement.of[tile], array.type.dtype
    indices = op.operands[1:] if loads else op.operands[1:-1]
    rows_of_tile, columns_of_tile = tile_shape(tile)
    with k.scratch("address row rows columns") as (address, row, rows_at, columns_at):
        rows: Value = 1
        if len(indices) > 1:
            rows = room.scalars.inside(indices[-2], array.type.shape[-2], rows_of_tile, rows_at)
        columns = room.scalars.inside(indices[-1], array.type.shape[-1], columns_of_tile, columns_at)
        unit = Unit.LOAD if loads else Unit.STORE
        pairs = weight_pairs(tile_type(tile), room.config) if tile in room.placement.weights else 1
        apart = -(-rows_of_tile // pairs)
        if isinstance(columns, Register):
            k.mul(columns, columns, dtype.bytes)
        else:
            columns *= dtype.bytes
        pitch = array.type.strides[-2] * dtype.bytes if len(indices) > 1 else 0
        room.parameters.set(unit, run_bytes=columns, mem_stride=pitch, chunk_stride=apart, local_stride=1)
        room.scalars.address(op, address)
        first = room.row(tile, row)
        if not loads:
            k.store(address, first, rows, space=buffer.space)
            return
        fill = word(op.attributes["fill"], dtype)
        fill *= {1: 0x01010101, 2: 0x00010001, 4: 1}[dtype.bytes]
        room.parameters.set(unit, chunks=chunks(tile_type(tile), room.config), fill=fill)
        if isinstance(rows, Register):
            with k.scratch("missing") as (missing,):
                k.mov(missing, rows_of_tile)
                k.sub(missing, missing, rows)
                room.parameters.set(unit, pad_runs=missing)
        else:
            room.parameters.set(unit, pad_runs=rows_of_tile - rows)
        k.load(address, first, rows, space=buffer.space, interleave=pairs > 1)
