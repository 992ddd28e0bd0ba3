"""Tokens of fp32 as one or two rows of int8, and sums of their products as fp32 again; parts of tile kernels.

With one part, x is q · s, s being the largest |x| of the token by 127. With two, x is (128 · high + low) · s, s being
the largest by 127 · 128: 15 bits. In memory the high parts of all tokens come first, then the low ones, so a product of
matrices sees twice the rows, and finds them behind the same weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.kernels.few_rows.program import HIGH
from sley.runtime.llama.kernels import layout
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


def quantise(q: Any, scales: Any, row: Any, x: Any, parts: int) -> None:
    """Writes tokens x to q from ``row`` on, and their scales to scales [tokens, 1]."""
    scale = scale_of(layout.largest(x, layout.is_folded(q)), parts)
    tile.store(scales, (row, 0), scale)
    where, axes = layout.place(q, row)
    store_parts(q, where, x, tile.reciprocal(scale), parts, **axes)


def in_fp32(high: Any, low: Any, scale: Any, weights: Any) -> Any:
    """Sums of int8, of both parts or, if ``low`` is None, of one, times the scales of tokens and of outputs."""
    total = high.to(np.float32)
    if low is not None:
        total = total * HIGH + low.to(np.float32)
    return total * scale * weights


def products(
    sums: Any, scales: Any, weights: Any, row: Any, rows: int, parts: int, first: Any = 0, count: int | None = None
) -> Any:
    """Products of tokens in fp32; of their rows, or columns, ``count`` from ``first`` on. Without scales and weights
    sums are such products already."""
    if scales is None:
        return layout.load(sums, row, rows, first, count)
    scale = tile.load(scales, (row, 0), (1 if layout.is_folded(sums) else rows, 1))
    high = layout.load(sums, row, rows, first, count)
    low = layout.load(sums, row + sums.shape[0] // 2, rows, first, count) if parts == 2 else None
    return in_fp32(high, low, scale, layout.load_shared(weights, first, count))
