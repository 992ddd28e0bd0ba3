"""Tokens of fp32 as one or two rows of int8.

With one part, x is q · s, s being the largest |x| of the token by 127. With two, x is (128 · high + low) · s, s being
the largest by 127 · 128: 15 bits. In memory the high parts of all tokens come first, then the low ones, so a product of
matrices sees twice the rows, and finds them behind the same weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.kernels.many_rows.problem import HIGH
from sley.runtime.tile import language as tile

SMALLEST = 2.0**-100
"""The least scale: that of zeros."""


def scale_of(most: Any, parts: int) -> Any:
    """The scale of tokens whose largest absolute value is ``most``."""
    return tile.maximum(most * (1 / 127 if parts == 1 else 1 / (127 * HIGH)), SMALLEST)


def store_parts(q: Any, place: tuple[Any, ...], x: Any, inverse: Any, parts: int, **axes: Any) -> None:
    """Writes x, times the inverse of its scale, to q [parts · tokens, …], high parts first."""
    units = x * inverse
    if parts == 1:
        tile.store(q, place, units.to(np.int8), **axes)
        return
    high = tile.round(units * (1 / HIGH))
    tile.store(q, place, high.to(np.int8), **axes)
    row, *others = place
    tile.store(q, (row + q.shape[0] // 2, *others), (units - high * HIGH).to(np.int8), **axes)


@tile.kernel
def to_int8(
    x: Any,
    norm: Any,
    inverses: Any,
    q: Any,
    parts: int,
    rows: int = tile.choice(1, 32, 64),
    columns: int = tile.choice(32, 64, 256, 512),
) -> None:
    """x [tokens, width], times the weights of a norm [1, width] if there is one, times what a token is multiplied by to
    be int8 [tokens, 1], to q [parts · tokens, width]."""
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    values = tile.load(x, (row, column), (rows, columns))
    if norm is not None:
        values = values * tile.load(norm, (0, column), (1, columns))
    store_parts(q, (row, column), values, tile.load(inverses, (row, 0), (rows, 1)), parts)
