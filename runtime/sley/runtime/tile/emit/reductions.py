"""Instructions of the vector unit: reductions of tiles, in the order of the golden model."""

from __future__ import annotations

from functools import partial

from sley.abi.faults import Unit
from sley.abi.instructions import VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.runtime.tile.emit.chunks import reduce_chunks
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.emit.rows import for_chunks, read_as
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.operations import REDUCTIONS
from sley.runtime.tile.passes.placement import chunks
from sley.runtime.tile.types import wide

FOLDED = VectorRow.ROW3
"""The row register of reductions."""


def emit_reduce(room: Room, op: Op) -> None:
    """Along axis 0 by a row register, along axis 1 by chunks and lanes."""
    if op.attributes["axis"] == 0:
        _along_rows(room, op)
    else:
        reduce_chunks(room, op, REDUCTIONS[op.attributes["kind"]], wide(tile_type(op.operands[0]).dtype))


def emit_spread(room: Room, op: Op) -> None:
    """The sum of one column and of zeros in the other lanes; as int32, so that no bit changes."""
    reduce_chunks(room, op, Reduction.SUM, ElementType.INT32)


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
