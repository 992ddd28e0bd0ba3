"""Instructions of the vector unit that transpose a tile of words in the accumulators."""

from __future__ import annotations

from functools import partial

from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape

FIRST = Chain(
    binary=BinaryOp.SECOND,
    binary2=BinaryOp.ADD,
    binary2_operand=Operand.LATE0,
    late0=Late.B,
    late0_lanes=Lanes.BROADCAST,
)
"""Element r of B in all lanes of row r."""
OTHERS = Chain(keep=Condition.IOTA_NEGATIVE, other=Operand.LATE1, late1=Late.B, late1_lanes=Lanes.BROADCAST)
"""The same, in the lanes from one on."""


def emit_transpose(room: Room, op: Op) -> None:
    """Row i becomes column i, one instruction for each: it writes its lane and those behind, which the next ones have
    again. Words are moved as int32, which changes no bit. What has one column then has it in all lanes, as others have.
    """
    k, n, (source,) = room.k, room.config.array, op.operands
    rows, columns = tile_shape(source)
    vector = partial(k.vector, dtype=ElementType.INT32, out=ElementType.INT32, b_space=Space.ACCUMULATOR)
    room.parameters.set(Unit.VECTOR, b_stride=rows, out_stride=1)
    for first in range(0, rows, n):
        with k.scratch("row out") as (row, out):
            room.row(source, row, first)
            room.row(op.result, out, first // n * columns)
            room.parameters.set(Unit.VECTOR, b_row=row, a_stride=0)
            vector(row, out, columns, chain=room.chain(FIRST))
            count = min(n, rows - first) - 1
            if count:
                room.parameters.set(Unit.VECTOR, a_stride=1, iota_row=0, iota_lane=1)
                with k.scratch("lane") as (lane,):
                    k.mov(lane, -1)
                    with room.repeat(count):
                        k.add(row, row, 1)
                        room.parameters.set(Unit.VECTOR, b_row=row, iota_base=lane)
                        vector(out, out, columns, chain=room.chain(OTHERS))
                        k.add(lane, lane, -1)
