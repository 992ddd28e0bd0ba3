"""Queries, keys and values from their products: turned by their position, keys and values put into the cache.

A head has the first elements of the pairs that are turned in its first half, the second ones in its second half: of a
pair (a, b) and its angle come a · cos - b · sin and b · cos + a · sin.
"""

from __future__ import annotations

from typing import Any

from sley.runtime.tile import language as tile


def turned(a: Any, b: Any, cos: Any, sin: Any) -> list[Any]:
    """Both halves of heads."""
    return [a * cos - b * sin, b * cos + a * sin]


def _turned_head(products: Any, cos: Any, sin: Any, first: Any, head: Any) -> list[Any]:
    """The halves of a head of some requests."""
    rows, half = cos.shape
    a, b = [tile.load(products, (first, head, at), (rows, half), axes=(0, 2)) for at in (0, half)]
    return turned(a, b, cos, sin)


@tile.kernel
def heads_of_tokens(
    products: Any,
    cosines: Any,
    sines: Any,
    positions: Any,
    slots: Any,
    queries: Any,
    keys: Any,
    values: Any,
    key_heads: int,
    rows: int,
) -> None:
    """For one token of each request, ``rows`` of them in a block of the grid, a head after the other.

    products: [requests, heads of queries, keys, values, head] float32. cosines, sines: [positions, head / 2].
    positions, slots: [1, requests], int32, the row of these and of the cache. queries: [requests, heads, key heads ·
    head] bfloat16, of each head zeros already but in the columns of its own key head. keys, values: [slots, key heads,
    head] bfloat16.
    """
    half, count, first = cosines.shape[1], queries.shape[1], tile.block_id() * rows
    group = count // key_heads
    numbers, places = [tile.load(given, (0, first), (1, rows)) for given in (positions, slots)]
    cos, sin = [tile.gather(table, (0, 0), numbers, half) for table in (cosines, sines)]
    for own in range(key_heads):
        for member in range(group):
            head = own * group + member
            for number, mine in enumerate(_turned_head(products, cos, sin, first, head)):
                place = (first, head, own * (2 * half) + number * half)
                tile.store(queries, place, mine.to(queries.dtype), axes=(0, 2))
    for own in range(key_heads):
        for number, new in enumerate(_turned_head(products, cos, sin, first, own + count)):
            tile.scatter(keys, (0, own, half * number), places, new.to(keys.dtype), axes=(0, 2))
        value = tile.load(products, (first, own + (count + key_heads), 0), (rows, 2 * half), axes=(0, 2))
        tile.scatter(values, (0, own, 0), places, value.to(values.dtype), axes=(0, 2))


@tile.kernel
def to_cache(
    new_keys: Any,
    new_values: Any,
    slots: Any,
    keys: Any,
    values: Any,
    rows: int = tile.choice(16, 32, 64),
) -> None:
    """Keys and values of a prompt [key heads, tokens, head] to their slots [1, tokens] in the cache, [slots, key heads,
    head]; all bfloat16."""
    token, own = tile.block_id(0) * rows, tile.block_id(1)
    numbers = tile.load(slots, (0, token), (1, rows))
    for new, cached in ((new_keys, keys), (new_values, values)):
        tile.scatter(
            cached,
            (0, own, 0),
            numbers,
            tile.load(new, (own, token, 0), (rows, new.shape[2]), axes=(1, 2)),
            axes=(0, 2),
        )
