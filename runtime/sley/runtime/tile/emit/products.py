"""Instructions of the matrix unit: a product of two tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sley.runtime.tile.ir import Op, tile_shape
from sley.runtime.tile.operations import TileError
from sley.runtime.tile.passes.placement import chunks
from sley.runtime.tile.types import TileType

if TYPE_CHECKING:
    from sley.runtime.tile.emit.program import Emitter


def emit_dot(emitter: Emitter, op: Op) -> None:
    """sums += a · b: for each chunk of columns, and each chunk of K, the weights and the rows that stream through
    them.
    """
    k, n = emitter.k, emitter.config.array
    a, b, _ = op.operands
    (rows, depth), (_, columns) = tile_shape(a), tile_shape(b)
    assert isinstance(a.type, TileType)
    wide = chunks((depth, columns), emitter.config)
    if not emitter.config.has(a.type.dtype):
        raise TileError(f"line {op.line}: the chip {emitter.config.name} does not multiply {a.type.dtype.info.name}")

    with k.scratch("a_at b_at sums") as (a_at, b_at, sums):
        emitter.row(b, b_at)
        emitter.row(op.result, sums)
        with emitter.repeat(wide):
            emitter.row(a, a_at)
            for count, weights in ((depth // n, n), (int(depth % n > 0), depth % n)):
                if count:
                    with emitter.repeat(count):
                        k.weights(b_at, weights, dtype=a.type.dtype)
                        k.matmul(a_at, sums, rows, accumulate=True, dtype=a.type.dtype)
                        k.add(b_at, b_at, weights)
                        k.add(a_at, a_at, rows)
            k.add(sums, sums, rows)
