"""Instructions of the matrix unit: a product of two tiles."""

from __future__ import annotations

from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.passes.placement import weight_pairs


def emit_dot(room: Room, op: Op) -> None:
    """sums += a · b: for each N columns, and each fold of K, the weights and the rows that stream through them."""
    k, n = room.k, room.config.array
    a, b, _ = op.operands
    (rows, depth), (_, columns) = tile_shape(a), tile_shape(b)
    dtype, pairs = tile_type(a).dtype, weight_pairs(tile_type(b), room.config)
    whole, rest = divmod(depth, room.config.fold_depth(dtype))
    with k.scratch("a_at b_at sums") as (a_at, b_at, sums):
        room.row(b, b_at)
        room.row(op.result, sums)
        with room.repeat(-(-columns // n)):
            room.row(a, a_at)
            for count, weights in ((whole, n), (int(rest > 0), -(-rest // pairs))):
                if count:
                    with room.repeat(count):
                        k.weights(b_at, weights, dtype=dtype)
                        k.matmul(a_at, sums, rows, accumulate=True, dtype=dtype)
                        k.add(b_at, b_at, weights)
                        k.add(a_at, a_at, rows)
            k.add(sums, sums, rows)
