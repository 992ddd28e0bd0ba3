"""Kernels of the tile language whose loops load a round ahead, in random sizes."""

import random
from typing import Any

import numpy as np

from sley.abi.types import ElementType
from sley.runtime import Device, tile
from sley.runtime.device.buffer import BF16
from sley.runtime.tile.schedule import Schedule

LAUNCHES = 3


@tile.kernel
def product(a: Any, b: Any, c: Any, rows: int, columns: int, depth: int) -> None:
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns), tile.sums_of(a.dtype))
    for k in range(0, a.shape[1], depth):
        total = tile.dot(tile.load(a, (row, k), (rows, depth)), tile.load(b, (k, column), (depth, columns)), total)
    tile.store(c, (row, column), total)


@tile.kernel
def doubled(x: Any, out: Any, rows: int, columns: int) -> None:
    """Each round stores."""
    for row in range(0, x.shape[0], rows):
        place = row, tile.block_id() * columns
        values = tile.load(x, place, (rows, columns)).to(np.float32)
        tile.store(out, place, (values * 2.0).to(out.dtype))


@tile.kernel
def summed(x: Any, out: Any, rows: int, columns: int) -> None:
    """A loop in a loop."""
    for row in range(0, x.shape[0], rows):
        total = tile.zeros((rows, columns))
        for column in range(0, x.shape[1], columns):
            total = total + tile.load(x, (row, column), (rows, columns)).to(np.float32)
        tile.store(out, (row, 0), total.max(1).to(out.dtype))


def launch(device: Device, seed: int) -> None:
    """A kernel with sizes by its seed, some times, each time with arrays in other places. Raises ``RoomError`` if the
    chip is too small."""
    rng = random.Random(seed)
    dtype = BF16 if device.config.has(ElementType.BF16) and rng.random() < 0.7 else np.dtype(np.int8)
    schedule = Schedule(rng.choice([1, 2, 4, 4]), prefetch=rng.random() < 0.8)
    rows, columns, depth = (rng.choice([1, 5, 16, 32, 33, 64]) for _ in range(3))
    m, n, k = (rng.choice([1, 2, 3]) * side + rng.choice([0, 0, 2]) for side in (rows, columns, 4 * depth))
    kernel = rng.choice([product, product, doubled, summed])
    places = []
    for _ in range(LAUNCHES):
        if kernel is product:
            sums = np.float32 if dtype == BF16 else np.int32
            a, b, c = device.empty((m, k), dtype), device.empty((k, n), dtype), device.empty((m, n), sums)
            grid = tile.cdiv(n, columns), tile.cdiv(m, rows)
            product[grid](a, b, c, rows=rows, columns=columns, depth=depth, schedule=schedule)
            places += [a, b, c]
        else:
            x = device.empty((m, k), dtype)
            out = device.empty((m, k) if kernel is doubled else (m, 1), dtype)
            kernel[tile.cdiv(k, depth) if kernel is doubled else 1](x, out, rows=rows, columns=depth, schedule=schedule)
            places += [x, out]
        device.stream.synchronize()
