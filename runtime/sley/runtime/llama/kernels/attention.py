"""Attention of one token of each request to the tokens in its cache."""

from __future__ import annotations

import math
from typing import Any

from sley.runtime.llama.kernels import layout
from sley.runtime.llama.kernels.quantised import scale_of, store_parts
from sley.runtime.tile import language as tile

KEYS = 64
"""Keys of a round, whose softmax is joined with those before: bits depend on it."""


@tile.kernel
def attend(
    queries: Any,
    keys: Any,
    values: Any,
    slots: Any,
    mask: Any,
    out: Any,
    q: Any,
    scales: Any,
    parts: int,
) -> None:
    """softmax(q · k^T / sqrt(head)) · v of each head, a block a request, to q and scales.

    queries: [requests, heads, key heads · head] bfloat16, of each head zeros but in the columns of its own key head.
    keys, values: [slots, key heads · head] bfloat16. slots: [requests, keys] int32, where keys are; mask: the same in
    float32, 0, or -inf where there is none. out: [requests, heads, key heads · head] float32, for temporary values.
    q: [parts · requests, key heads, heads of each, head] int8.
    """
    request, (heads, width) = tile.block_id(), queries.shape[1:]
    key_heads, group, head = q.shape[1:]
    factor = math.log2(math.e) / math.sqrt(head)
    query = tile.load(queries, (request, 0, 0), (heads, width))
    most, total = tile.full((heads, 1), -float("inf")), tile.zeros((heads, 1))
    result = tile.zeros((heads, width))
    for first in range(0, slots.shape[1], KEYS):
        numbers = tile.load(slots, (request, first), (1, KEYS))
        scores = tile.dot(query, tile.gather(keys, (0, 0), numbers, width).T)
        scores = scores + tile.load(mask, (request, first), (1, KEYS))
        higher = tile.maximum(most, scores.max(1))
        powers, faded = tile.exp2((scores - higher) * factor), tile.exp2((most - higher) * factor)
        total = total * faded + powers.sum(1)
        result = result * faded + tile.dot(powers.to(queries.dtype), tile.gather(values, (0, 0), numbers, width))
        most = higher
    tile.store(out, (request, 0, 0), result * tile.reciprocal(total))
    peak = tile.zeros((1, 1))
    for own in range(key_heads):
        mine = tile.load(out, (request, own * group, own * head), (group, head))
        peak = tile.maximum(peak, layout.largest(mine, True))
    scale = scale_of(peak, parts)
    tile.store(scales, (request, 0), scale)
    inverse = tile.reciprocal(scale)
    for own in range(key_heads):
        mine = tile.load(out, (request, own * group, own * head), (group, head))
        store_parts(q, (request, own, 0, 0), mine, inverse, parts, axes=(2, 3))
