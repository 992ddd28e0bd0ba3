"""Attention of a token to those before it, in the cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sley.runtime.llama.kernels import layout
from sley.runtime.llama.kernels.quantised import scale_of, store_parts
from sley.runtime.tile import language as tile

KEYS = 64
"""Keys of a round, whose softmax is joined with those before: bits depend on it."""


@tile.kernel
def attend(queries: Any, keys: Any, values: Any, slots: Any, mask: Any, out: Any, key_heads: int) -> None:
    """softmax(q · k^T / sqrt(head)) · v of each head, rounded to bfloat16; each block of the grid is a request.

    Heads are lanes: scores have a row for each key, so the softmax goes along rows, and the array keeps queries, then
    powers, while keys and values pass.

    queries: [requests, heads, key heads · head] bfloat16, of each head zeros but in the columns of its own key head.
    keys, values: [slots, key heads · head] bfloat16. slots: [requests, keys] int32, where keys are, in bytes from the
    first slot on; mask: [requests, keys] float32, 0, or -inf where there is none. out: [requests, key heads · head,
    heads] bfloat16; of a head the rows of its own key head count.
    """
    request, (heads, width) = tile.block_id(), queries.shape[1:]
    factor = math.log2(math.e) / math.sqrt(width // key_heads)
    query = tile.load(queries, (request, 0, 0), (heads, width), axes=(1, 2)).T
    most, total = tile.full((1, heads), -float("inf")), tile.zeros((1, heads))
    result = tile.zeros((width, heads))
    for first in range(0, slots.shape[1], KEYS):
        numbers = tile.load(slots, (request, first), (1, KEYS))
        scores = tile.dot(tile.gather(keys, (0, 0), numbers, width, in_bytes=True), query)
        scores = scores + tile.load(mask, (request, first), (KEYS, 1), axes=(1, None))
        higher = tile.maximum(most, scores.max(0))
        powers, faded = tile.exp2((scores - higher) * factor), tile.exp2((most - higher) * factor)
        total = total * faded + powers.sum(0)
        seen = tile.gather(values, (0, 0), numbers, width, in_bytes=True).T
        result = result * faded + tile.dot(seen, powers.to(queries.dtype))
        most = higher
    tile.store(out, (request, 0, 0), (result * tile.reciprocal(total)).to(out.dtype), axes=(1, 2))


@tile.kernel
def heads_quantised(seen: Any, q: Any, scales: Any, parts: int) -> None:
    """What ``attend`` gave to q [parts, requests, key heads, heads of each, head] int8 and scales [requests, 1]; each
    block of the grid is a request."""
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
