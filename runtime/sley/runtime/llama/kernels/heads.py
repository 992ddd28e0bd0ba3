"""Queries, keys and values from their products: turned by their position, keys and values put into the cache.

A head has the first elements of the pairs that are turned in its first half, the second ones in its second half: of a
pair (a, b) and its angle come a · cos - b · sin and b · cos + a · sin.
"""

from __future__ import annotations

from typing import Any

from sley.runtime.llama.kernels.quantised import in_fp32
from sley.runtime.tile import language as tile

ROWS = tile.choice(16, 32, 64)


def turned(a: Any, b: Any, cos: Any, sin: Any) -> list[Any]:
    """Both halves of heads."""
    return [a * cos - b * sin, b * cos + a * sin]


@tile.kernel
def heads_of_token(
    products: Any,
    cosines: Any,
    sines: Any,
    position: Any,
    slot: Any,
    queries: Any,
    keys: Any,
    values: Any,
    key_heads: int,
) -> None:
    """For one token of a request.

    products: [heads of queries, keys, values, head] float32. cosines, sines: [positions, head / 2]. position, slot: [1,
    1], int32, the row of these and of the cache. queries: [heads, key heads · head] bfloat16, of each head zeros but in
    the columns of its own key head. keys, values: [slots, key heads, head] bfloat16.
    """
    half, count, dtype = keys.shape[2] // 2, queries.shape[0], queries.dtype
    group = count // key_heads
    place = tile.load(position, (0, 0), (1, 1))
    cos, sin = tile.gather(cosines, (0, 0), place, half), tile.gather(sines, (0, 0), place, half)
    a, b = [tile.load(products, (0, at), (count, half)) for at in (0, half)]
    for number, mine in enumerate(turned(a, b, cos, sin)):
        head = tile.iota(mine.shape, 0)
        for own in range(key_heads):
            kept = (head >= own * group) & (head < (own + 1) * group)
            tile.store(queries, (0, half * (2 * own + number)), tile.where(kept, mine, 0.0).to(dtype))
    row = tile.load(slot, (0, 0), (1, 1))
    for own in range(key_heads):
        first = count + own
        c, d = [tile.load(products, (first, at), (1, half)) for at in (0, half)]
        for half_number, new in enumerate(turned(c, d, cos, sin)):
            tile.scatter(keys, (0, own, half * half_number), row, new.to(dtype), axes=(0, 2))
        value = tile.load(products, (first + key_heads, 0), (1, 2 * half))
        tile.scatter(values, (0, own, 0), row, value.to(dtype), axes=(0, 2))


def _rows(
    sums: Any, scales: Any, weights: Any, place: tuple[Any, Any], columns: tuple[int, int], rows: int, parts: int
) -> Any:
    """Columns of a head of tokens: the first one and how many."""
    (token, head), (column, count) = place, columns
    scale = tile.load(scales, (token, 0), (rows, 1))
    factor = tile.load(weights, (head, column), (1, count))
    shape, axes = (rows, count), (0, 2)
    high = tile.load(sums, (token, head, column), shape, axes=axes)
    low = tile.load(sums, (token + sums.shape[0] // 2, head, column), shape, axes=axes) if parts == 2 else None
    return in_fp32(high, low, scale, factor)


def _turned_rows(
    sums: Any, scales: Any, weights: Any, turns: tuple[Any, Any], place: tuple[Any, Any], rows: int, parts: int
) -> list[Any]:
    """The two halves of a head of tokens from ``place`` on, a token and a head: rows of their positions."""
    half = turns[0].shape[1]
    cos, sin = [tile.load(table, (place[0], 0), (rows, half)) for table in turns]
    a, b = [_rows(sums, scales, weights, place, (at, half), rows, parts) for at in (0, half)]
    return turned(a, b, cos, sin)


@tile.kernel
def queries_of_prompt(
    sums: Any, scales: Any, weights: Any, cosines: Any, sines: Any, queries: Any, parts: int, rows: int = ROWS
) -> None:
    """For the tokens of one request, from position 0 on, blocks of tokens and heads. queries: [heads, tokens, head]
    bfloat16; the others as in ``heads_of_token``."""
    token, head = tile.block_id(0) * rows, tile.block_id(1)
    halves = _turned_rows(sums, scales, weights, (cosines, sines), (token, head), rows, parts)
    for number, half in enumerate(halves):
        tile.store(queries, (head, token, number * half.shape[1]), half.to(queries.dtype))


@tile.kernel
def keys_of_prompt(
    sums: Any,
    scales: Any,
    weights: Any,
    cosines: Any,
    sines: Any,
    slots: Any,
    keys: Any,
    values: Any,
    cached_keys: Any,
    cached_values: Any,
    first: int,
    parts: int,
    rows: int = ROWS,
) -> None:
    """The same of keys and values, whose heads are those of sums from ``first`` on. keys, values: [key heads, tokens,
    head] bfloat16; cached_keys, cached_values: [slots, key heads, head], those of the cache; slots: [1, tokens]."""
    token, own = tile.block_id(0) * rows, tile.block_id(1)
    heads, size = keys.shape[0], keys.shape[2]
    numbers = tile.load(slots, (0, token), (1, rows))
    halves = _turned_rows(sums, scales, weights, (cosines, sines), (token, own + first), rows, parts)
    for number, half in enumerate(halves):
        place, rounded = number * half.shape[1], half.to(keys.dtype)
        tile.store(keys, (own, token, place), rounded)
        tile.scatter(cached_keys, (0, own, place), numbers, rounded, axes=(0, 2))
    value = _rows(sums, scales, weights, (token, own + (first + heads)), (0, size), rows, parts).to(values.dtype)
    tile.store(values, (own, token, 0), value)
    tile.scatter(cached_values, (0, own, 0), numbers, value, axes=(0, 2))
