"""Instructions of the matrix unit: a product of two tiles."""

from __future__ import annotations

from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape
from sley.runtime.tile.operations import TileError
from sley.runtime.tile.passes.placement import chunks
from sley.runtime.tile.types import TileType


def emit_dot(room: Room, op: Op) -> None:
    """sums += a · b: for each chunk of columns, and each chunk of K, the weights and the rows that stream through
    them.
    """
    k, n = room.k, room.config.array
    a, b, _ = op.operands
    (rows, depth), (_, columns) = tile_shape(a), tile_shape(b)
    assert isinstance(a.type, TileType)
    wide = chunks((depth, columns), room.config)
    if not room.config.has(a.type.dtype):
        raise TileError(f"line {op.line}: the chip {room.config.name} does not multiply {a.type.dtype.info.name}")

    with k.scratch("a_at b_at sums") as (a_at, b_at, sums):
        room.row(b, b_at)
        room.row(op.result, sums)
        with room.repeat(wide):
            room.row(a, a_at)
            for count, weights in ((depth // n, n), (int(depth % n > 0), depth % n)):
                if count:
                    with room.repeat(count):
                        k.weights(b_at, weights, dtype=a.type.dtype)
                        k.matmul(a_at, sums, rows, accumulate=True, dtype=a.type.dtype)
                        k.add(b_at, b_at, weights)
                        k.add(a_at, a_at, rows)
            k.add(sums, sums, rows)
