"""The residual stream: where it begins, what is added to it, and its norm as the next product takes it.

Arrays of tokens have three axes, see ``layout``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.llama.kernels import layout
from sley.runtime.llama.kernels.quantised import products, quantise
from sley.runtime.tile import language as tile

ROWS = tile.choice(1, 2, 4, 8, 16)


@tile.kernel
def embed(tokens: Any, embedding: Any, x: Any, rows: int = ROWS) -> None:
    """x [tokens, width] = embedding[tokens] in fp32; tokens: [1, tokens] int32."""
    row = tile.block_id() * rows
    values = tile.gather(embedding, (0, 0), tile.load(tokens, (0, row), (1, rows)), x.shape[1])
    tile.store(x, (row, 0), values.to(np.float32))


@tile.kernel
def begin(x: Any, norm: Any, q: Any, scales: Any, epsilon: float, parts: int, rows: int = ROWS) -> None:
    """The norm of x to q and scales."""
    row = tile.block_id() * rows
    quantise(q, scales, row, normed(layout.load(x, row, rows), norm, epsilon), parts)


@tile.kernel
def add(
    sums: Any,
    scales: Any,
    weights: Any,
    x: Any,
    norm: Any,
    q: Any,
    next_scales: Any,
    epsilon: float,
    parts: int,
    rows: int = ROWS,
) -> None:
    """x += products; its norm to q and next_scales."""
    row = tile.block_id() * rows
    values = layout.load(x, row, rows) + products(sums, scales, weights, row, rows, parts)
    place, axes = layout.place(x, row)
    tile.store(x, place, values, **axes)
    quantise(q, next_scales, row, normed(values, norm, epsilon), parts)


def normed(x: Any, norm: Any, epsilon: float) -> Any:
    """x · rsqrt(mean of x² + epsilon) · norm, of each token."""
    _, rows, columns = norm.shape
    mean = layout.total(x * x, rows > 1) * (1 / (rows * columns))
    return x * tile.rsqrt(mean + epsilon) * layout.load_shared(norm)


@tile.kernel
def logits(
    sums: Any, scales: Any, weights: Any, out: Any, parts: int, rows: int = 1, pieces: int = tile.choice(64, 128)
) -> None:
    """Products of the head in fp32, so many rows, or columns, at a time."""
    row, piece = tile.block_id(1) * rows, tile.block_id(0) * pieces
    values = products(sums, scales, weights, row, rows, parts, piece, pieces)
    folded = layout.is_folded(out)
    tile.store(out, (row, piece, 0) if folded else (row, 0, piece), values, axes=(1, 2) if folded else (0, 2))


@tile.kernel
def rows_quantised(x: Any, q: Any, scales: Any, parts: int, rows: int = ROWS) -> None:
    """Tokens of bfloat16 to q and scales."""
    row = tile.block_id() * rows
    quantise(q, scales, row, layout.load(x, row, rows).to(np.float32), parts)
