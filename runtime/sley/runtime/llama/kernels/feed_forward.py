"""Between the products of the feed-forward network."""

from __future__ import annotations

from typing import Any

from sley.runtime.llama.kernels import layout
from sley.runtime.llama.kernels.quantised import quantise
from sley.runtime.tile import language as tile


@tile.kernel
def gated(products: Any, q: Any, scales: Any, parts: int) -> None:
    """silu(gate) · up of single tokens to q and scales; products are those of gate and up, side by side. Arrays have
    three axes, see ``layout``."""
    row = tile.block_id()
    count = q.shape[1] if layout.is_folded(q) else q.shape[2]
    gate, up = [layout.load(products, row, 1, first, count) for first in (0, count)]
    quantise(q, scales, row, tile.silu(gate) * up, parts)
