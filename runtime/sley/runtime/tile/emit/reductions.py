"""Instructions of the vector unit: reductions of tiles, in the order of the golden model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sley.abi.faults import Unit
from sley.abi.instructions import VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import IDENTITY, JOIN, BinaryOp, Reduction
from sley.runtime.assembler.operands import Register
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.emit.rows import for_chunks, read_as
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.operations import REDUCTIONS
from sley.runtime.tile.passes.placement import chunks

FOLDED = VectorRow.ROW3
"""The row register of reductions."""


def emit_reduce(room: Room, op: Op) -> None:
    """Along axis 0 by a row register, along axis 1 by chunks and exchanged lanes."""
    if op.attributes["axis"] == 0:
        _along_rows(room, op)
    else:
        _along_columns(room, op, REDUCTIONS[op.attributes["kind"]], tile_type(op.result).dtype)


def emit_spread(room: Room, op: Op) -> None:
    """The sum of one column and of zeros in the other lanes; as int32, so that no bit changes."""
    _along_columns(room, op, Reduction.SUM, ElementType.INT32)


def _along_rows(room: Room, op: Op) -> None:
    k, (source,) = room.k, op.operands
    dtype = tile_type(op.result).dtype
    reduction = REDUCTIONS[op.attributes["kind"]]
    rows = tile_shape(source)[0]
    reducing = Chain(reduce=reduction, register=int(FOLDED), silent=True)
    writing = Chain(binary=BinaryOp.SECOND, binary_operand=Operand.ROW3)
    a_space, a_type = read_as(room, source)
    vector = partial(k.vector, dtype=dtype, out=dtype, a_space=a_space, a_type=a_type)
    room.parameters.set(Unit.VECTOR, a_stride=1, out_stride=0)
    with k.scratch("a out") as (a, out):
        room.row(source, a)
        room.row(op.result, out)
        count = chunks(tile_type(op.result), room.config)

        def body(chunk: int) -> None:
            vector(a, out, rows, chain=room.chain(reducing))
            k.vfold(FOLDED, reduction, dtype=dtype)
            vector(a, out, 1, chain=room.chain(writing))
            if count > 1:
                k.add(a, a, rows)
                k.add(out, out, 1)

        for_chunks(room, count, 1, body)


def _along_columns(room: Room, op: Op, reduction: Reduction, dtype: ElementType) -> None:
    """The chunks one after the other, then lanes. What a last chunk lacks is the identity."""
    k, (source,), n = room.k, op.operands, room.config.array
    rows, columns = tile_shape(source)
    join = JOIN[reduction]
    whole, rest = divmod(columns, n)
    joined = Chain(binary2=join, binary2_operand=Operand.LATE0, late0=Late.B)
    masked = Chain(keep=Condition.IOTA_NEGATIVE, other=Operand.SPLAT0)
    a_space, a_type = read_as(room, source)
    vector = partial(k.vector, dtype=dtype, out=dtype)
    read = partial(vector, a_space=a_space, a_type=a_type)
    room.parameters.set(Unit.VECTOR, a_stride=1, b_stride=1, out_stride=1)
    if rest:
        room.parameters.set(Unit.VECTOR, splat0=IDENTITY[reduction, dtype])
        room.parameters.set(Unit.VECTOR, iota_base=-rest, iota_lane=1, iota_row=0)
    with k.scratch("a out") as (a, out):
        result = room.row(op.result, out)
        room.row(source, a)
        if whole + bool(rest) > 1:
            room.parameters.set(Unit.VECTOR, b_row=room.place(op.result, out))
        if whole:
            read(a, result, rows, chain=room.chain(Chain()))

        def body(chunk: int) -> None:
            k.add(a, a, rows)
            read(a, result, rows, chain=room.chain(joined))

        for_chunks(room, whole - 1, 1, body)
        if rest and whole:
            k.add(a, a, rows)
        if rest:
            stages = replace(masked, binary2=join, binary2_operand=Operand.LATE0, late0=Late.B) if whole else masked
            read(a, result, rows, chain=room.chain(stages))
        exchange_lanes(room, result, rows, reduction, dtype)


def exchange_lanes(room: Room, at: Register, rows: int, reduction: Reduction, dtype: ElementType) -> None:
    """Joins all lanes of rows in the accumulators, in place, so that each lane has the result."""
    exchanged = Chain(binary2=JOIN[reduction], binary2_operand=Operand.LATE0, late0=Late.A, late0_lanes=Lanes.EXCHANGE)
    room.parameters.set(Unit.VECTOR, a_stride=1, out_stride=1)
    distance = 1
    while distance < room.config.array:
        room.parameters.set(Unit.VECTOR, exchange=distance)
        room.k.vector(at, at, rows, dtype=dtype, out=dtype, chain=room.chain(exchanged))
        distance *= 2
