"""Between the products of the feed-forward network."""

from __future__ import annotations

from typing import Any

from sley.runtime.llama.kernels.quantised import products, quantise
from sley.runtime.tile import language as tile


@tile.kernel
def gated(
    sums: Any, scales: Any, weights: Any, q: Any, next_scales: Any, parts: int, rows: int = tile.choice(1, 2, 4, 8)
) -> None:
    """silu(gate) · up to q and next_scales; sums are those of gate and up, side by side."""
    row = tile.block_id() * rows
    count = q.shape[1] if q.shape[1] > 1 else q.shape[2]
    gate = products(sums, scales, weights, row, rows, parts, 0, count)
    up = products(sums, scales, weights, row, rows, parts, count, count)
    quantise(q, next_scales, row, tile.silu(gate) * up, parts)
