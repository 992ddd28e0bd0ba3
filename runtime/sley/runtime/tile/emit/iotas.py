"""Instructions of the vector unit that make the numbers of rows or columns, from those of half as many."""

from __future__ import annotations

from functools import partial

from sley.abi.faults import Unit
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.operands import Register
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.passes.placement import chunks

ZERO = Chain(binary=BinaryOp.SECOND)
MORE = Chain(add=Operand.SPLAT0)
REPEATED = Chain(keep=Condition.IOTA_NEGATIVE, other=Operand.LATE1, late1=Late.A, late1_lanes=Lanes.EXCHANGE)
"""Lanes from one on have what those in front of them have."""
BEHIND = Chain(add=Operand.SPLAT0, keep=Condition.IOTA_NEGATIVE, other=Operand.LATE1, late1=Late.A)
"""A sum in the lanes from one on."""


def emit_iota(room: Room, op: Op) -> None:
    """One column, in all lanes, whose element r is r; or one row, whose column c is c."""
    rows, columns = tile_shape(op.result)
    with room.k.scratch("first next") as (first, next):
        room.row(op.result, first)
        room.parameters.set(Unit.VECTOR, a_stride=1, out_stride=1)
        vector = partial(room.k.vector, dtype=ElementType.INT32, out=ElementType.INT32)
        vector(first, first, 1, chain=room.chain(ZERO))
        if columns > 1:
            _lanes(room, first)
        count = max(rows, chunks(tile_type(op.result), room.config))
        _doubled(room, first, next, count, 1 if rows > 1 else room.config.array)


def _lanes(room: Room, row: Register) -> None:
    """The numbers of lanes, in a row of zeros."""
    vector = partial(room.k.vector, dtype=ElementType.INT32, out=ElementType.INT32)
    distance = 1
    while distance < room.config.array:
        room.parameters.set(Unit.VECTOR, iota_row=0, exchange=distance, splat0=distance)
        room.parameters.set(Unit.VECTOR, iota_base=-distance, iota_lane=1)
        vector(row, row, 1, chain=room.chain(REPEATED))
        room.parameters.set(Unit.VECTOR, iota_base=distance - 1, iota_lane=-1)
        vector(row, row, 1, chain=room.chain(BEHIND))
        distance *= 2


def _doubled(room: Room, first: Register, next: Register, count: int, step: int) -> None:
    """Rows, each with ``step`` more than the one before, from the first on."""
    done = 1
    while done < count:
        room.parameters.set(Unit.VECTOR, splat0=done * step)
        room.k.add(next, first, done)
        rows = min(done, count - done)
        room.k.vector(first, next, rows, dtype=ElementType.INT32, out=ElementType.INT32, chain=room.chain(MORE))
        done *= 2
