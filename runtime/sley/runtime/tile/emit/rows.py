"""Instructions of the vector unit: chains on tiles, and reductions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import IDENTITY, JOIN, BinaryOp
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.ir import Value as TileValue
from sley.runtime.tile.operations import REDUCTIONS
from sley.runtime.tile.passes.placement import chunks, row_elements
from sley.runtime.tile.types import TileType

SPLATS = ("splat0", "splat1", "splat2", "splat3")
FOLDED = VectorRow.ROW3
"""The row register of reductions."""


def spot(room: Room, value: TileValue, whole: tuple[int, int], chunk: int) -> tuple[int, int, int]:
    """Where N columns of an operation on ``whole`` are in a tile: rows behind its first, rows from one to the next, and
    the half of the row."""
    shape = tile_shape(value)
    if shape[1] == 1 != whole[1]:
        chunk = 0
    halves = row_elements(tile_type(value).dtype, room.config) // room.config.array
    return chunk // halves * shape[0], int(shape[0] > 1 or whole[0] == 1), chunk % halves


def emit_chain(room: Room, op: Op) -> None:
    """A chain on whole tiles in one instruction; with operands that are read again and again, or in halves of rows, in
    one for each N columns."""
    whole = op.attributes["shape"]
    splats = zip(SPLATS, op.attributes["splats"], strict=False)
    room.parameters.set(Unit.VECTOR, **dict(splats))
    values = [*op.operands] or [op.result]
    count = -(-whole[1] // room.config.array)
    halves = any(tile_type(value).dtype is ElementType.INT8 for value in (*values, op.result))
    if all(tile_shape(value) == whole for value in values) and not halves:
        _instruction(room, op, values, 0, whole[0] * count)
        return
    for chunk in range(count):
        _instruction(room, op, values, chunk, whole[0])


def _instruction(room: Room, op: Op, values: list[TileValue], chunk: int, rows: int) -> None:
    k, stages, whole = room.k, op.attributes["stages"], op.attributes["shape"]
    others = [name for name, used in (("b", stages.uses_b), ("c", stages.uses_c)) if used]
    with k.scratch("a b c out") as (a_at, b_at, c_at, out_at):
        offset, step, a_half = spot(room, values[0], whole, chunk)
        first = room.row(values[0], a_at, offset)
        room.parameters.set(Unit.VECTOR, a_stride=step, out_stride=1)
        b, b_half = (Space.ACCUMULATOR, ElementType.INT8), 0
        for name, value, register in zip(others, values[1:], (b_at, c_at), strict=False):
            offset, step, half = spot(room, value, whole, chunk)
            row = room.place(value, register, offset)
            room.parameters.set(Unit.VECTOR, **{f"{name}_row": row, f"{name}_stride": step})
            if name == "b":
                b, b_half = _read(room, value), half
        a = _read(room, values[0])
        offset, _, out_half = spot(room, op.result, whole, chunk)
        k.vector(
            first,
            room.row(op.result, out_at, offset),
            rows,
            a_space=a[0],
            a_type=a[1],
            a_half=a_half,
            b_space=b[0],
            b_type=b[1],
            b_half=b_half,
            dtype=op.attributes["computed"],
            out=op.attributes["dtype"],
            out_half=out_half,
            chain=k.chain(stages),
        )


def _read(room: Room, value: TileValue) -> tuple[Space, ElementType]:
    """Where the rows of a tile are, and as what they are read there."""
    space = room.placement.of[value].space
    assert isinstance(value.type, TileType)
    return space, value.type.dtype if space is Space.SCRATCHPAD else ElementType.INT8


def emit_reduce(room: Room, op: Op) -> None:
    """Along axis 0 by a row register, along axis 1 by chunks and exchanged lanes; the order is that of the golden
    model.
    """
    (_along_rows if op.attributes["axis"] == 0 else _along_columns)(room, op)


def _along_rows(room: Room, op: Op) -> None:
    k, (source,) = room.k, op.operands
    type = op.result.type
    assert isinstance(type, TileType)
    reduction = REDUCTIONS[op.attributes["kind"]]
    rows = tile_shape(source)[0]
    reducing = k.chain(Chain(reduce=reduction, register=int(FOLDED), silent=True))
    writing = k.chain(Chain(binary=BinaryOp.SECOND, binary_operand=Operand.ROW3))
    vector = partial(k.vector, dtype=type.dtype, out=type.dtype)
    room.parameters.set(Unit.VECTOR, a_stride=1, out_stride=1)
    for chunk in range(chunks(type, room.config)):
        with k.scratch("a out") as (a, out):
            first = room.row(source, a, chunk * rows)
            vector(first, first, rows, chain=reducing)
            k.vfold(FOLDED, reduction, dtype=type.dtype)
            vector(first, room.row(op.result, out, chunk), 1, chain=writing)


def _along_columns(room: Room, op: Op) -> None:
    k, (source,) = room.k, op.operands
    type, n = op.result.type, room.config.array
    assert isinstance(type, TileType)
    reduction = REDUCTIONS[op.attributes["kind"]]
    rows, columns = tile_shape(source)
    count = chunks(tile_type(source), room.config)
    join = JOIN[reduction]
    masked = Chain(keep=Condition.IOTA_NEGATIVE, other=Operand.SPLAT0) if columns % n else Chain()
    joined = Chain(binary2=join, binary2_operand=Operand.LATE0, late0=Late.B)
    vector = partial(k.vector, dtype=type.dtype, out=type.dtype)
    room.parameters.set(Unit.VECTOR, a_stride=1, b_stride=1, out_stride=1)
    if columns % n:
        room.parameters.set(Unit.VECTOR, splat0=IDENTITY[reduction, type.dtype])
        room.parameters.set(Unit.VECTOR, iota_base=-(columns % n), iota_lane=1, iota_row=0)
    with k.scratch("a out") as (a, out):
        result = room.row(op.result, out)
        for chunk in range(count):
            last = chunk == count - 1
            stages = masked if last else Chain()
            if chunk:
                stages = replace(stages, binary2=join, binary2_operand=Operand.LATE0, late0=Late.B)
                room.parameters.set(Unit.VECTOR, b_row=room.place(op.result, out))
            first = room.row(source, a, chunk * rows)
            vector(first, result, rows, chain=k.chain(stages))
        exchanged = k.chain(replace(joined, late0=Late.A, late0_lanes=Lanes.EXCHANGE))
        distance = 1
        while distance < n:
            room.parameters.set(Unit.VECTOR, exchange=distance)
            vector(result, result, rows, chain=exchanged)
            distance *= 2
