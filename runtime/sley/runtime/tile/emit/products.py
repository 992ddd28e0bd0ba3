"""Instructions of the matrix unit: a product of two tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sley.abi.instructions import Op as Code
from sley.runtime.assembler.operands import ZERO
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
    tiles, apart = -(-columns // n), room.placement.apart(b, room.config)
    whole, rest = divmod(depth, room.config.fold_depth(dtype))
    last = -(-rest // pairs)
    folds = [(whole, n), (int(rest > 0), last)]
    several = tiles > 1 or sum(count for count, _ in folds) > 1
    with k.scratch("a_at b_at sums" + " step" * several) as (a_at, b_at, sums, *steps):
        room.row(a, a_at)
        room.row(b, b_at)
        room.row(op.result, sums)
        for step in steps:  # from weights to weights: of the next columns, or of the next fold
            k.mov(step, apart if tiles > 1 else n)

        def fold(weights: int, accumulate: bool) -> None:
            with room.repeat(tiles):
                k.weights(b_at, weights, dtype=dtype, step=steps[0] if steps else ZERO)
                k.matmul(a_at, sums, rows, accumulate=accumulate, dtype=dtype)
                if tiles > 1:
                    k.add(sums, sums, rows)

        def next_fold() -> None:
            if tiles > 1:
                k.sub(sums, sums, tiles * rows)
                k.add(b_at, b_at, n - tiles * apart)
            k.add(a_at, a_at, room.placement.apart(a, room.config))

        if "fresh" in op.attributes:
            _first(room, loops, partial(fold, n if whole else last))
            folds[0 if whole else 1] = (max(whole - 1, 0), n)
            if any(count for count, _ in folds):
                next_fold()
        for number, (count, weights) in enumerate(folds):
            if count:
                with room.repeat(count):
                    fold(weights, True)
                    if count > 1 or any(more for more, _ in folds[number + 1 :]):
                        next_fold()


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
