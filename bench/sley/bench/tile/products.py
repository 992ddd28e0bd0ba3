"""Products of a page in the tile language against those of the hand-written plan, on one device."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from random import Random
from statistics import fmean
from typing import Any

import numpy as np

from sley.abi.transport import computes
from sley.abi.types import ElementType
from sley.bench.tile.beside import Beside, second_runs
from sley.runtime import Device, blas, tile
from sley.runtime.device.types import numpy_type

SIZES = (16, 33, 64, 100, 128, 200, 256, 384, 500)
WHOLE = ((256, 256, 256), (512, 512, 512))


def extent(size: int, most: int, multiple: int) -> int:
    """Of blocks that are a multiple, and at least half of ``most``, those that are the fewest elements together; the
    largest of these. 500 in multiples of 8, at most 64, are nine blocks of 56."""
    units, largest = tile.cdiv(size, multiple), max(most // multiple, 1)
    tried = range(min(largest, units), (largest - 1) // 2, -1)
    return multiple * min(tried or [units], key=lambda each: tile.cdiv(units, each) * each)


@tile.kernel
def product(
    a: Any,
    b: Any,
    c: Any,
    lanes: Any,
    rows: Any = tile.choice(16, 18, 32, 48, 64, 128, 256),
    columns: Any = tile.choice(64, 128, 256),
    depth: Any = tile.choice(16, 32, 64, 128, 256),
) -> None:
    """c = a · b, sums as they are. ``lanes``: columns of a tile are a multiple, and what the array adds up at a time is
    as many elements of bf16, twice as many of int8."""
    rows, columns = tile.even(a.shape[0], rows), extent(b.shape[1], columns, lanes)
    depth = min(extent(a.shape[1], depth, 2 * lanes // a.dtype.bytes), a.shape[1])
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns), tile.sums_of(a.dtype))
    for k in range(0, a.shape[1], depth):
        total = tile.dot(tile.load(a, (row, k), (rows, depth)), tile.load(b, (k, column), (depth, columns)), total)
    tile.store(c, (row, column), total)


@dataclass(frozen=True)
class Compared(Beside):
    """Of a product, m by k by n. ``equal``: whether bits are, on an engine that computes some."""

    sizes: tuple[int, int, int]
    dtype: ElementType
    equal: bool


def compare(device: Device, count: int) -> list[Compared]:
    """Two whole products and so many random ones, of all types of the array."""
    random = Random(3)
    sizes = [*WHOLE, *((random.choice(SIZES), random.choice(SIZES), random.choice(SIZES)) for _ in range(count))]
    types = device.config.operand_types
    return [_compared(device, size, dtype) for size in sizes for dtype in types]


def mean(found: list[Compared]) -> float:
    """The geometric mean of their shares."""
    return exp(fmean(log(each.share) for each in found))


def _compared(device: Device, sizes: tuple[int, int, int], dtype: ElementType) -> Compared:
    m, k, n = sizes
    random, kind = np.random.default_rng(m * k * n), numpy_type(dtype)
    a, b = (device.array(random.integers(-4, 5, shape).astype(kind)) for shape in ((m, k), (k, n)))
    sums = np.int32 if dtype is ElementType.INT8 else np.float32
    by_hand, compiled = (device.empty((m, n), sums) for _ in range(2))
    lanes = device.config.array
    grid = product[lambda rows, columns: (tile.cdiv(n, extent(n, columns, lanes)), tile.cdiv(m, rows))]
    cycles = second_runs(device, lambda: grid(a, b, compiled, lanes=lanes), lambda: blas.gemm(a, b, out=by_hand))
    equal = not computes(device.driver.transport) or by_hand.numpy().tobytes() == compiled.numpy().tobytes()
    return Compared(*cycles, sizes, dtype, equal)
