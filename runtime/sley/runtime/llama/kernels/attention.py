"""Results of attention to the cache, as rows of tokens."""

from __future__ import annotations

from typing import Any

from sley.runtime.tile import language as tile


@tile.kernel
def rows_of_heads(results: Any, seen: Any) -> None:
    """Results of ``token_attention`` [requests, head + 1, lanes] to seen [requests, heads, head], both bfloat16; each
    block of the grid is a request."""
    request = tile.block_id()
    tile.store(seen, (request, 0, 0), tile.load(results, (request, 0, 0), seen.shape[1:], axes=(2, 1)), axes=(1, 2))
