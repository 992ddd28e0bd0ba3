"""Functions of the language that are made of others: places of extremes, conditions together, running sums."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees

from sley.runtime import Device, tile
from sley.sim.engines.options import default_engine

BF16, FP32, INT32, INT8 = (np.dtype(t) for t in (ml_dtypes.bfloat16, np.float32, np.int32, np.int8))
RNG = np.random.default_rng(9)
SHAPES = [(1, 1), (1, 40), (40, 1), (16, 16), (17, 33), (3, 70)]


@tile.kernel
def along(x: Any, out: Any, function: Callable[[Any, int], Any], axis: int) -> None:
    tile.store(out, (0, 0), function(tile.load(x, (0, 0), x.shape), axis).to(out.dtype))


def values(shape: tuple[int, int], dtype: np.dtype[Any], special: bool = True) -> np.ndarray[Any, Any]:
    """Few different ones, so that there are equal ones."""
    x = RNG.integers(-3, 4, shape).astype(dtype)
    if dtype.kind != "i" and special:
        x[RNG.random(shape) < 0.05] = np.nan
        x[RNG.random(shape) < 0.1] = -np.inf
        x[RNG.random(shape) < 0.1] = -0.0
    return x


@pytest.mark.some(24)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [INT32, FP32, BF16, INT8], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_places(base: Device, shape: tuple[int, int], dtype: np.dtype[Any], axis: int) -> None:
    x = values(shape, dtype)
    out = np.zeros((1, shape[1]) if axis == 0 else (shape[0], 1), np.int32)
    for function, wanted in ((tile.argmax, np.argmax), (tile.argmin, np.argmin)):
        found = kernel_agrees(base, along, {"x": x, "out": out}, function=function, axis=axis)
        assert (found["out"] == wanted(x.astype(np.float32), axis=axis, keepdims=True)).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [INT32, BF16], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_conditions(base: Device, shape: tuple[int, int], dtype: np.dtype[Any], axis: int) -> None:
    x = values(shape, dtype)
    out = np.zeros((1, shape[1]) if axis == 0 else (shape[0], 1), np.int8)
    for function, wanted in ((tile.any, np.any), (tile.all, np.all)):
        found = kernel_agrees(base, along, {"x": x, "out": out}, function=function, axis=axis)
        assert (found["out"] == wanted(x != 0, axis=axis, keepdims=True)).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [INT32, FP32, BF16, INT8], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_running_sums(base: Device, shape: tuple[int, int], dtype: np.dtype[Any], axis: int) -> None:
    x = values(shape, dtype, special=False)
    out = np.zeros(shape, np.int32 if dtype.kind == "i" else np.float32)
    found = kernel_agrees(base, along, {"x": x, "out": out}, function=tile.cumsum, axis=axis)
    assert (found["out"].view(out.dtype) == np.cumsum(x.astype(np.float64), axis)).all()


def test_the_order_of_running_sums(base: Device) -> None:
    x = RNG.standard_normal((37, 20)).astype(np.float32) * np.float32(2) ** RNG.integers(-9, 9, (37, 20))
    x = x.astype(np.float32)
    found = kernel_agrees(base, along, {"x": x, "out": np.zeros_like(x)}, function=tile.cumsum, axis=0)
    sums, distance = x.copy(), 1
    while distance < len(x):
        sums[distance:] = sums[distance:] + sums[:-distance]
        distance *= 2
    assert (found["out"].view(FP32) == sums).all()


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
def test_on_the_gateware() -> None:
    with Device.open("fast:base?memory=4M") as device:
        x = values((33, 20), BF16)
        for function, dtype in ((tile.argmax, np.int32), (tile.cumsum, np.float32), (tile.any, np.int8)):
            for axis in (0, 1):
                shape = x.shape if function is tile.cumsum else ((1, 20) if axis == 0 else (33, 1))
                kernel_agrees(device, along, {"x": x, "out": np.zeros(shape, dtype)}, function=function, axis=axis)
