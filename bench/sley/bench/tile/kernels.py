"""Kernels for the guards of the tile compiler: as a user writes them, with choices."""

from typing import Any

import numpy as np

from sley.runtime import tile

NEVER = -3e38
"""The score of what is not seen."""


@tile.kernel
def add(x: Any, y: Any, out: Any, rows: Any = tile.choice(8, 16, 32, 64), columns: Any = tile.choice(128, 256)) -> None:
    place = tile.block_id(1) * rows, tile.block_id(0) * columns
    a, b = tile.load(x, place, (rows, columns)), tile.load(y, place, (rows, columns))
    tile.store(out, place, (a * 2.0 + b).to(out.dtype))


@tile.kernel
def softmax(x: Any, out: Any, rows: Any = tile.choice(8, 16, 32, 64)) -> None:
    place = tile.block_id() * rows, 0
    values = tile.load(x, place, (rows, x.shape[1]), fill=-float("inf"))
    powers = tile.exp(values - values.max(1))
    tile.store(out, place, (powers / powers.sum(1)).to(out.dtype))


@tile.kernel
def log_softmax(x: Any, out: Any, rows: Any = tile.choice(8, 16, 32, 64)) -> None:
    place = tile.block_id() * rows, 0
    values = tile.load(x, place, (rows, x.shape[1]), fill=-float("inf"))
    largest = values.max(1)
    total = tile.log(tile.exp(values - largest).sum(1))
    tile.store(out, place, (values - largest - total).to(out.dtype))


@tile.kernel
def rms_norm(x: Any, weight: Any, out: Any, eps: float, rows: Any = tile.choice(8, 16, 32, 64)) -> None:
    place, size = (tile.block_id() * rows, 0), x.shape[1]
    values = tile.load(x, place, (rows, size)).to(np.float32)
    factor = tile.rsqrt(((values * values).sum(1) + eps * size) * (1 / size))
    tile.store(out, place, (values * factor * tile.load(weight, (0, 0), (1, size))).to(out.dtype))


@tile.kernel
def layer_norm(x: Any, weight: Any, bias: Any, out: Any, eps: float, rows: Any = tile.choice(8, 16, 32, 64)) -> None:
    place, size = (tile.block_id() * rows, 0), x.shape[1]
    values = tile.load(x, place, (rows, size)).to(np.float32)
    centred = values - values.sum(1) * (1 / size)
    factor = tile.rsqrt(((centred * centred).sum(1) + eps * size) * (1 / size))
    scale, shift = (tile.load(value, (0, 0), (1, size)).to(np.float32) for value in (weight, bias))
    tile.store(out, place, (centred * factor * scale + shift).to(out.dtype))


@tile.kernel
def attention(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    turned: Any,
    rows: Any = tile.choice(16, 32, 64),
    keys: Any = tile.choice(64, 128),
) -> None:
    """softmax(q · k^T) · v. Queries are lanes, so the softmax goes along rows; ``turned`` has results as columns."""
    row, depth = tile.block_id() * rows, q.shape[1]
    queries = tile.load(q, (row, 0), (rows, depth)).T
    largest, sums, total = tile.full((1, rows), -3e38), tile.zeros((1, rows)), tile.zeros((depth, rows))
    for at in range(0, k.shape[0], keys):
        scores = tile.dot(tile.load(k, (at, 0), (keys, depth)), queries)
        top = tile.maximum(largest, scores.max(0))
        weights, factor = tile.exp(scores - top).to(q.dtype), tile.exp(largest - top)
        sums = sums * factor + weights.to(np.float32).sum(0)
        values = tile.load(v, (at, 0), (depth, keys), axes=(1, 0))
        total = tile.dot(values, weights, total * factor)
        largest = top
    tile.store(turned, (0, row), (total / sums).to(out.dtype))
    tile.store(out, (row, 0), tile.load(turned, (0, row), (rows, depth), axes=(1, 0)))


@tile.kernel
def paged_attention(
    q: Any, k: Any, v: Any, slots: Any, mask: Any, out: Any, factor: float, keys: Any = tile.choice(32, 64, 128)
) -> None:
    """Attention of a token for each request to keys and values that lie anywhere: ``slots`` has their bytes from the
    first one on, ``mask`` is 0 where there is none. Heads are lanes; results [requests, width, heads]."""
    request, (_, heads, width) = tile.block_id(), q.shape
    queries = tile.load(q, (request, 0, 0), (heads, width)).T
    largest, total, sums = tile.full((1, heads), NEVER), tile.zeros((1, heads)), tile.zeros((width, heads))
    for at in range(0, slots.shape[1], keys):
        rows = tile.load(slots, (request, at), (1, keys))
        seen = tile.load(mask, (request, at), (keys, 1), axes=(1, 0))
        scores = tile.dot(tile.gather(k, (0, 0), rows, width, in_bytes=True), queries)
        scores = tile.where(seen != 0.0, scores * factor, NEVER)
        top = tile.maximum(largest, scores.max(0))
        weights, faded = tile.exp2(scores - top).to(q.dtype), tile.exp2(largest - top)
        total = total * faded + weights.to(np.float32).sum(0)
        sums = tile.dot(tile.gather(v, (0, 0), rows, width, in_bytes=True).T, weights, sums * faded)
        largest = top
    tile.store(out, (request, 0, 0), (sums / total).to(out.dtype))


@tile.kernel
def convolution(x: Any, w: Any, out: Any, taps: int = 3, columns: Any = tile.choice(64, 128)) -> None:
    """Images [images, y, x, channels] with a margin, windows of taps x taps. ``w``: [taps y · taps x · channels,
    outputs]. A block is a line of pixels; each tap is a product of the pixels that it sees."""
    image, line, column = tile.block_id(2), tile.block_id(1), tile.block_id(0) * columns
    width, channels = out.shape[2], x.shape[3]
    total = tile.zeros((width, columns), tile.sums_of(x.dtype))
    for y in range(taps):
        for tap in tuple(range(taps)):  # no loop of the chip: all taps of a line are in one round
            pixels = tile.load(x, (image, line + y, tap, 0), (width, channels), axes=(2, 3))
            weights = tile.load(w, ((y * taps + tap) * channels, column), (channels, columns))
            total = tile.dot(pixels, weights, total)
    tile.store(out, (image, line, 0, column), total.to(out.dtype), axes=(2, 3))


@tile.kernel
def matmul(
    a: Any,
    b: Any,
    c: Any,
    rows: Any = tile.choice(32, 64, 128),
    columns: Any = tile.choice(32, 64, 128),
    depth: Any = tile.choice(32, 64),
) -> None:
    rows, columns, depth = tile.even(a.shape[0], rows), tile.even(b.shape[1], columns), tile.even(a.shape[1], depth)
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns), tile.sums_of(a.dtype))
    for k in range(0, a.shape[1], depth):
        total = tile.dot(tile.load(a, (row, k), (rows, depth)), tile.load(b, (k, column), (depth, columns)), total)
    tile.store(c, (row, column), tile.relu(total.to(np.float32)).to(c.dtype))
