"""Results of attention to the cache, as rows of tokens."""

from __future__ import annotations

from typing import Any

from sley.runtime.tile import language as tile


@tile.kernel
def rows_of_heads(results: Any, seen: Any) -> None:
    """Results of ``token_attention`` [requests, key heads · head, lanes] to seen [requests, key heads, heads of each,
    head], both bfloat16; each block of the grid is a key head of a request."""
    own, request = tile.block_id(0), tile.block_id(1)
    group, head = seen.shape[2:]
    mine = tile.load(results, (request, own * head, own * group), (group, head), axes=(2, 1))
    tile.store(seen, (request, own, 0, 0), mine, axes=(2, 3))
