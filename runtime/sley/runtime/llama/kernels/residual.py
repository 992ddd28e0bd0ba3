"""The residual stream: where it begins, and the scales of its norm.

A norm is x · weights · root, root being 1 / sqrt(mean of x² + epsilon). Tokens become int8 without the root, by which
their scale is multiplied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.llama.kernels.quantised import scale_of, store_parts
from sley.runtime.tile import language as tile

ROWS = tile.choice(1, 2, 4, 8, 16)


@tile.kernel
def embed(tokens: Any, embedding: Any, x: Any, rows: int = ROWS) -> None:
    """x [tokens, width] = embedding[tokens] in fp32; tokens: [1, tokens] int32."""
    row = tile.block_id() * rows
    values = tile.gather(embedding, (0, 0), tile.load(tokens, (0, row), (1, rows)), x.shape[1])
    tile.store(x, (row, 0), values.to(np.float32))


@tile.kernel
def norm_scales(
    x: Any, norm: Any, scales: Any, inverses: Any, epsilon: float, parts: int, lanes: int, rows: int = 1
) -> None:
    """Of the norm of x [tokens, width], scales [tokens, 1] and what makes int8 of x · norm [tokens, 1]. Squares are
    summed as the programs of prompts do it: lanes of even and of odd blocks apart."""
    row, shape = tile.block_id() * rows, (rows, lanes)
    even, odd, most = tile.zeros(shape), tile.zeros(shape), tile.zeros(shape)
    for column in range(0, x.shape[1], 2 * lanes):
        one, other = tile.load(x, (row, column), shape), tile.load(x, (row, column + lanes), shape)
        even, odd = even + one * one, odd + other * other
        first, second = [tile.load(norm, (0, column + at), (1, lanes)) for at in (0, lanes)]
        a, b = one * first, other * second
        most = tile.maximum(most, tile.maximum(tile.maximum(a, -a), tile.maximum(b, -b)))
    scale = scale_of(most.max(1), parts)
    root = tile.rsqrt((even + odd).sum(1) * (1 / x.shape[1]) + epsilon)
    tile.store(scales, (row, 0), root * scale)
    tile.store(inverses, (row, 0), tile.reciprocal(scale))


@tile.kernel
def rows_quantised(x: Any, q: Any, scales: Any, parts: int, rows: int = tile.choice(1, 4, 8, 16, 32)) -> None:
    """Tokens of bfloat16 [tokens, width] to q [parts · tokens, width] and scales [tokens, 1]."""
    row = tile.block_id() * rows
    values = tile.load(x, (row, 0), (rows, x.shape[1])).to(np.float32)
    scale = scale_of(tile.maximum(values, -values).max(1), parts)
    tile.store(scales, (row, 0), scale)
    store_parts(q, (row, 0), values, tile.reciprocal(scale), parts)
