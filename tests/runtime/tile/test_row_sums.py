"""Reductions along rows: partial results by chunks of N, for all their numbers, against a sum written out in full."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees

from sley.abi.vector.operations import chunk_partials
from sley.runtime import Device, tile

BF16, FP32, INT32 = (np.dtype(t) for t in (ml_dtypes.bfloat16, np.float32, np.int32))
LANES = 16
COLUMNS = (1, 16, 17, 32, 40, 64, 72, 80, 256, 500, 512, 640, 1000, 1024)


@tile.kernel
def reduced(x: Any, out: Any, kind: str) -> None:
    values = tile.load(x, (0, 0), x.shape)
    tile.store(out, (0, 0), values.reduced(kind, 1).to(out.dtype))


@tile.kernel
def folded(x: Any, y: Any, out: Any) -> None:
    """Of a chain with tiles of one shape, and of one with a column."""
    a, b = tile.load(x, (0, 0), x.shape), tile.load(y, (0, 0), x.shape).to(np.float32)
    first = (a.to(np.float32) * b).sum(1)
    tile.store(out, (0, 0), first)
    tile.store(out, (0, 1), tile.exp2(a - a.max(1)).sum(1))


def values(rows: int, columns: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(rows * columns)
    if dtype == INT32:
        return random.integers(-(1 << 31), 1 << 31, (rows, columns)).astype(INT32)
    return (random.standard_normal((rows, columns)) * 10.0 ** random.integers(-4, 5, (rows, columns))).astype(dtype)


def in_order(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The sum along rows of float32, addition by addition."""
    chunks = -(-x.shape[1] // LANES)
    wide = np.full((x.shape[0], chunks * LANES), -0.0, np.float32)
    wide[:, : x.shape[1]] = x
    count = chunk_partials(chunks)
    partials: list[Any] = [None] * count
    for chunk in range(chunks):
        part = wide[:, chunk * LANES : (chunk + 1) * LANES]
        before = partials[chunk % count]
        partials[chunk % count] = part if before is None else before + part
    while len(partials) > 1:
        half = len(partials) // 2
        partials = [partials[i] + partials[i + half] for i in range(half)]
    lanes = [partials[0][:, lane] for lane in range(LANES)]
    for distance in (1, 2, 4, 8):
        lanes = [lanes[lane] + lanes[lane ^ distance] for lane in range(LANES)]
    total: np.ndarray[Any, Any] = lanes[0]
    return total


def test_numbers_of_partials() -> None:
    assert [chunk_partials(n) for n in (1, 2, 3, 16, 31, 32, 63, 64, 1000)] == [1, 2, 2, 2, 2, 4, 4, 8, 8]


@pytest.mark.parametrize("columns", COLUMNS)
def test_sums(base: Device, columns: int) -> None:
    rows = 9
    for dtype in (FP32, BF16, INT32):
        x = values(rows, columns, dtype)
        out = np.zeros((rows, 1), INT32 if dtype == INT32 else FP32)
        found = kernel_agrees(base, reduced, {"x": x, "out": out}, kind="sum")["out"]
        if dtype == INT32:
            with np.errstate(over="ignore"):
                assert (found.view(INT32)[:, 0] == x.sum(1, dtype=INT32)).all()
        else:
            np.testing.assert_array_equal(found.view(FP32)[:, 0], in_order(x.astype(FP32)))


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("rows", [3, 40])
def test_extremes(base: Device, rows: int, columns: int) -> None:
    """Of bfloat16 two chunks are read at a time; tiles of 32 rows and more have one partial."""
    x = values(rows, columns, BF16)
    x[0, columns // 2], x[-1, -1] = np.nan, -np.inf
    for kind, plain in (("max", np.maximum), ("min", np.minimum)):
        for dtype in (FP32, BF16):
            arrays = {"x": x, "out": np.zeros((rows, 1), dtype)}
            found = kernel_agrees(base, reduced, arrays, kind=kind)["out"].view(dtype)[:, 0]
            np.testing.assert_array_equal(found.astype(FP32), plain.reduce(x.astype(FP32), axis=1))


@pytest.mark.parametrize("columns", [16, 48, 128, 512, 544, 1024])
def test_folds(base: Device, columns: int) -> None:
    x, y = values(5, columns, BF16), values(5, columns, BF16)
    found = kernel_agrees(base, folded, {"x": x, "y": y, "out": np.zeros((5, 2), FP32)})["out"].view(FP32)
    np.testing.assert_array_equal(found[:, 0], in_order(x.astype(FP32) * y.astype(FP32)))
