"""Instructions of the matrix unit: a product of two tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sley.abi.instructions import Op as Code
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Op, tile_shape, tile_type
from sley.runtime.tile.passes.placement import weight_pairs


def emit_dot(room: Room, op: Op, loops: Sequence[Op]) -> None:
    """sums += a · b: for each fold of K, and each N columns, the weights and the rows that stream through them.

    Columns are inside, so that a row of sums is added to again only when all columns have been. ``loops``: in whose
    first rounds there are no sums yet.
    """
    k, n = room.k, room.config.array
    a, b, _ = op.operands
    (rows, depth), (_, columns) = tile_shape(a), tile_shape(b)
    dtype, pairs = tile_type(a).dtype, weight_pairs(tile_type(b), room.config)
    tiles, a_apart, b_apart = (
        -(-columns // n),
        room.placement.apart(a, room.config),
        room.placement.apart(b, room.config),
    )
    with k.scratch("a_at b_at sums") as (a_at, b_at, sums):
        room.row(a, a_at)
        room.row(b, b_at)
        room.row(op.result, sums)

        def fold(weights: int, accumulate: bool) -> None:
            with room.repeat(tiles):
                k.weights(b_at, weights, dtype=dtype)
                k.matmul(a_at, sums, rows, accumulate=accumulate, dtype=dtype)
                if tiles > 1:
                    k.add(b_at, b_at, b_apart)
                    k.add(sums, sums, rows)

        def next_fold(weights: int) -> None:
            if tiles > 1:
                k.sub(sums, sums, tiles * rows)
            k.add(b_at, b_at, weights - (tiles > 1) * tiles * b_apart)
            k.add(a_at, a_at, a_apart)

        whole, rest = divmod(depth, room.config.fold_depth(dtype))
        folds = [(whole, n), (int(rest > 0), -(-rest // pairs))]
        if "fresh" in op.attributes:
            weights = n if whole else -(-rest // pairs)
            _first(room, loops, partial(fold, weights))
            next_fold(weights)
            folds[0 if whole else 1] = (max(whole - 1, 0), weights)
        for count, weights in folds:
            if count:
                with room.repeat(count):
                    fold(weights, True)
                    next_fold(weights)


def _first(room: Room, loops: Sequence[Op], fold: Callable[[bool], None]) -> None:
    """The first fold: with or without sums, by the round."""
    k = room.k
    if not loops:
        fold(False)
        return
    later, end = k.label("later"), k.label("first fold")
    for loop in loops:
        assert loop.body is not None
        variable, lower = room.scalars.registers[loop.body.parameters[0]], loop.attributes["lower"]
        with k.scratch("lower") as (first,):
            if lower:
                k.mov(first, lower)
            k.branch(Code.BNE, variable, first if lower else 0, later)
    fold(False)
    k.jump(end)
    k.place(later)
    fold(True)
    k.place(end)
