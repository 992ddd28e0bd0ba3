"""Instructions of Load and Store: a tile and its place in an array."""

from __future__ import annotations

from sley.abi.faults import Unit
from sley.runtime.assembler.operands import Register, Value
from sley.runtime.tile.constants import word
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_type
from sley.runtime.tile.operations import STORES, UNITS
from sley.runtime.tile.passes.gangs import share_of
from sley.runtime.tile.passes.placement import blocks_of, chunks, weight_pairs
from sley.runtime.tile.passes.regions import array_of, shape_of, transposed
from sley.runtime.tile.passes.runs import LISTS

BLOCKS = 8
"""Blocks of N rows that one LOAD which transposes makes of a run."""


def emit_transfer(room: Room, op: Op) -> None:
    """A load or a store. Runs are rows, as far as the array has them; columns, if Load transposes them. Runs of a list
    are as many as there are numbers."""
    k, sizes, axes, unit = room.k, shape_of(op), op.attributes["axes"], UNITS[op.name]
    with k.scratch("address row rows columns") as (address, row, rows_at, columns_at):
        rows, columns = (
            _listed(room, op, size, into)
            if op.name in LISTS and op.attributes.get("along", 0) == number
            else _inside(room, op, axis, size, into)
            for number, (axis, size, into) in enumerate(zip(axes, sizes, (rows_at, columns_at), strict=True))
        )
        if op.name in LISTS:
            room.parameters.set(unit, list_row=room.place(op.operands[LISTS[op.name]], row))
        room.scalars.address(op, address)
        if op.name in STORES:
            tile = op.operands[-1]
            room.parameters.set(unit, run_bytes=_bytes(room, op, columns), chunk_stride=sizes[0], local_stride=1)
            _distance(room, op, axes[0])
            space = room.placement.of[tile].space
            k.store(address, room.row(tile, row), rows, space=space, by_list=op.name in LISTS)
            return
        fill = word(op.attributes["fill"], array_of(op).dtype)
        fill *= {1: 0x01010101, 2: 0x00010001, 4: 1}[array_of(op).dtype.bytes]
        room.parameters.set(unit, fill=fill)
        room.row(op.result, row)
        if transposed(op):
            _transposed(room, op, address, row, rows, columns)
        else:
            _rows(room, op, address, row, rows, columns)


def _rows(room: Room, op: Op, address: Register, row: Register, rows: Value, columns: Value) -> None:
    k, tile = room.k, op.result
    pairs = weight_pairs(tile_type(tile), room.config) if tile in room.placement.weights else 1
    _distance(room, op, op.attributes["axes"][0])
    room.parameters.set(
        Unit.LOAD,
        run_bytes=_bytes(room, op, columns),
        chunk_stride=-(-shape_of(op)[0] // pairs),
        local_stride=1,
        chunks=chunks(tile_type(tile), room.config),
    )
    _pad(room, rows, shape_of(op)[0])
    space = room.placement.of[tile].space
    k.load(address, row, rows, space=space, interleave=pairs > 1, by_list=op.name in LISTS, share=share_of(op))


def _transposed(room: Room, op: Op, address: Register, row: Register, rows: Value, columns: Value) -> None:
    """Runs are columns, which become blocks of N rows. The last blocks first: their rows behind those of the tile are
    where the next columns begin."""
    k, n, tile = room.k, room.config.array, op.result
    weights = tile in room.placement.weights
    blocks, apart, interleave = blocks_of(op, room.config, weights)
    dtype, (_, size) = tile_type(tile).dtype, shape_of(op)
    runs = columns
    if "everywhere" in op.attributes:  # the same column for all lanes
        size = runs = room.config.row_bytes // dtype.bytes
        room.parameters.set(Unit.LOAD, mem_stride=0)
    else:
        _distance(room, op, op.attributes["axes"][1])
    most = room.config.row_bytes * (BLOCKS // 2 if interleave else BLOCKS)
    room.parameters.set(Unit.LOAD, chunk_stride=n, local_stride=apart)
    _pad(room, runs, size)
    whole = _bytes(room, op, rows)
    for first in reversed(range(0, blocks * n, BLOCKS * n)):
        part = first // (BLOCKS * n)
        here = min(BLOCKS, blocks - part * BLOCKS)
        with k.scratch("bytes source target") as (bytes, source, target):
            if isinstance(whole, Register):
                k.mov(bytes, whole)
                k.sub(bytes, bytes, part * most)
                k.min(bytes, bytes, most)
                k.max(bytes, bytes, 0)
                length: Value = bytes
            else:
                length = max(0, min(most, whole - part * most))
            room.parameters.set(Unit.LOAD, run_bytes=length, chunks=here // 2 if interleave else here)
            k.add(source, address, part * most)
            k.add(target, row, first)
            by_list = op.name in LISTS
            k.load(source, target, runs, interleave=interleave, transpose=True, by_list=by_list, share=share_of(op))


def _inside(room: Room, op: Op, axis: int | None, size: int, into: Register) -> Value:
    """How many of the elements of a tile along an axis the array has."""
    if axis is None:
        return 1
    return room.scalars.inside(op.operands[1 + axis], array_of(op).shape[axis], size, into)


def _listed(room: Room, op: Op, size: int, into: Register) -> Value:
    """How many runs a list has, at most ``size``."""
    low, high = room.scalars.ranges[op.operands[LISTS[op.name] + 1]]
    if low == high:
        return max(0, min(low, size))
    room.scalars.compute(op.operands[LISTS[op.name] + 1], into)
    if high > size:
        room.k.min(into, into, size)
    if low < 0:
        room.k.max(into, into, 0)
    return into


def _distance(room: Room, op: Op, axis: int | None) -> None:
    """From run to run along an axis, unless a list has it."""
    if op.name not in LISTS:
        strides = array_of(op).strides
        pitch = 0 if axis is None else strides[axis] * array_of(op).dtype.bytes
        room.parameters.set(UNITS[op.name], mem_stride=pitch)


def _bytes(room: Room, op: Op, elements: Value) -> Value:
    """Of so many elements, in their register if they have one."""
    bytes = array_of(op).dtype.bytes
    if not isinstance(elements, Register):
        return elements * bytes
    if bytes > 1:
        room.k.mul(elements, elements, bytes)
    return elements


def _pad(room: Room, runs: Value, whole: int) -> None:
    """What is missing of the runs of a whole tile is filled up."""
    if not isinstance(runs, Register):
        room.parameters.set(Unit.LOAD, pad_runs=whole - runs)
        return
    with room.k.scratch("missing") as (missing,):
        room.k.mov(missing, whole)
        room.k.sub(missing, missing, runs)
        room.parameters.set(Unit.LOAD, pad_runs=missing)
