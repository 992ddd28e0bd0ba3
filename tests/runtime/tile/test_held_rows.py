"""Rows that are joined with all rows of a tile, in row registers: every stage that takes one, and tiles of one row."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees

from sley.runtime import Device, tile

BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def joined(x: Any, a: Any, b: Any, out: Any, kind: str) -> None:
    rows, columns = x.shape
    values, first, second = (
        tile.load(x, (0, 0), (rows, columns)),
        *(tile.load(row, (0, 0), (1, columns)) for row in (a, b)),
    )
    if kind == "sum":
        result = values + first
    elif kind == "affine":
        result = values * first + second
    elif kind == "largest":
        result = tile.maximum(values - first, second)
    elif kind == "chosen":
        result = tile.where(first > 0.0, values, second)
    else:
        result = tile.exp(first - values) * second
    tile.store(out, (0, 0), result.to(out.dtype))


@pytest.mark.parametrize("kind", ["sum", "affine", "largest", "chosen", "power"])
@pytest.mark.parametrize("shape", [(16, 16), (37, 130), (1, 300), (33, 1), (15, 48)], ids=str)
def test_results(base: Device, shape: tuple[int, int], kind: str) -> None:
    random = np.random.default_rng(shape[0])
    arrays = {"x": random.standard_normal(shape).astype(np.float32)}
    arrays |= {name: random.standard_normal((1, shape[1])).astype(np.float32) for name in "ab"}
    arrays["out"] = np.zeros(shape, np.float32)
    kernel_agrees(base, joined, arrays, kind=kind)


@pytest.mark.parametrize("columns", [16, 40, 300])
def test_results_of_bf16(base: Device, columns: int) -> None:
    """Rows of bf16 are in the scratchpad, of which no row register is filled."""
    random = np.random.default_rng(columns)
    arrays = {"x": random.standard_normal((20, columns)).astype(BF16)}
    arrays |= {name: random.standard_normal((1, columns)).astype(BF16) for name in "ab"}
    arrays["out"] = np.zeros((20, columns), BF16)
    kernel_agrees(base, joined, arrays, kind="affine")
