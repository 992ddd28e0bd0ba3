"""What attention to the cache gives, as the next product takes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.llama.kernels import layout
from sley.runtime.llama.kernels.quantised import scale_of, store_parts
from sley.runtime.tile import language as tile


@tile.kernel
def heads_quantised(seen: Any, q: Any, scales: Any, parts: int) -> None:
    """Results of ``token_attention`` [requests, key heads · head, lanes] to q [parts, requests, key heads, heads of
    each, head] int8 and scales [requests, 1]; each block of the grid is a request."""
    request, (key_heads, group, head) = tile.block_id(), q.shape[2:]
    peak = tile.zeros((1, 1))
    for own in range(key_heads):
        mine = tile.load(seen, (request, own * head, own * group), (group, head), axes=(2, 1))
        peak = tile.maximum(peak, layout.largest(mine.to(np.float32), True))
    scale = scale_of(peak, parts)
    tile.store(scales, (request, 0), scale)
    inverse = tile.reciprocal(scale)
    for own in range(key_heads):
        mine = tile.load(seen, (request, own * head, own * group), (group, head), axes=(2, 1)).to(np.float32)
        store_parts(q, (0, request, own, 0, 0), mine, inverse, parts, axes=(3, 4))
