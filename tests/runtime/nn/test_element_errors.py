"""Element-wise operators against float64: the errors that their documentation states."""

from typing import Any

import numpy as np
import pytest
from element_operators import TABLE, Of, lines
from numpy.typing import NDArray

from sley.runtime import Device, nn
from sley.runtime.nn.mapping import INT8, INT32

SMALLEST, LARGEST = 2.0**-126, float(np.finfo(np.float32).max)
POINTS = (*np.outer([1, -1], [0.0, 0.25, 0.5, 1, 2, 3, 88, 128, np.inf]).ravel(), np.nan)
KINKS = (-3, -2, 0, 0.5, 3)
"""Where functions have no derivative."""
OF_FLOATS = [name for name in TABLE if lines(name)[0].floats]
Floats = NDArray[np.float64]


def grid(random: np.random.Generator, line: Of, count: int) -> NDArray[np.float32]:
    """float32 of all magnitudes, of usual ones, and points at which something changes."""
    usual = random.standard_normal(count // 2) * random.choice([0.3, 3, 30], count // 2)
    every = 2.0 ** random.uniform(-126, 127, count - count // 2) * random.choice([-1, 1], count - count // 2)
    found = np.concatenate([usual, every, POINTS])
    low = line.low if line.low >= 0 else -np.inf if line.low < -1e38 else line.low
    high = np.inf if line.high > 1e38 else line.high
    found = found.astype(np.float32)
    inside = found[((found >= low) & (found <= high)) | np.isnan(found)]
    inside = inside[~(np.abs(inside) < line.least)]
    return random.permutation(inside)[:count]


def excess(line: Of, operands: list[NDArray[np.float32]], result: NDArray[np.float32]) -> tuple[float, Any]:
    """The largest error as a part of what is allowed, and where it is."""
    wide = [np.where(np.abs(x) < SMALLEST, np.copysign(0, x), x).astype(np.float64) for x in operands]
    with np.errstate(all="ignore"):
        right = np.asarray(line.reference(*wide, *line.more), np.float64)
        size = np.abs(right if line.scale is None else line.scale(*wide))
    found = result.astype(np.float64)
    usual = np.isfinite(right) & (np.abs(right) < LARGEST * (1 - 2.0**-18)) & np.isfinite(size)
    usual &= np.all([np.isfinite(x) for x in wide], axis=0) & (size < 2.0**124)
    assert np.isfinite(found[usual]).all(), [x[usual & ~np.isfinite(found)][:4] for x in operands]
    ends = (np.isnan(right) | np.isinf(right)) & ~np.any([np.isinf(x) for x in wide], axis=0)
    if line.scale is not None:  # gradients are those of one branch, or 0, where an operand is NaN
        ends &= ~np.isnan(right)
    wrong = ends & (found != right) & ~(np.isnan(found) & np.isnan(right))
    assert not wrong.any(), [x[wrong][:4] for x in (*operands, found, right)]
    unit = 2.0 ** (np.floor(np.log2(np.where(usual, np.maximum(size, SMALLEST), 1))) - 23)
    flushed = np.where(np.abs(right) < SMALLEST * (1 + 2.0**-20), SMALLEST, 0)
    allowed = line.ulps * unit + line.absolute * np.where(usual, np.abs(wide[0]) if line.scale else 1, 0) + flushed
    error = np.where(usual, np.abs(found - np.where(usual, right, 0)), 0)
    part = np.divide(error, allowed, out=np.where(error > 0, np.inf, 0.0), where=allowed > 0)
    at = int(np.argmax(part))
    return float(part[at]), [float(x[at]) for x in operands]


def check(device: Device, name: str, line: Of, count: int) -> float:
    random = np.random.default_rng(count)
    grids = [grid(random, line, count) for _ in range(line.arrays)]
    shortest = min(map(len, grids))
    operands = [x[:shortest] for x in grids]
    if name.endswith("_backward") and line.scale is not None and line.absolute:
        near = np.min([np.abs(operands[1] - kink) for kink in KINKS], axis=0)
        operands = [x[~(near < 1e-5)] for x in operands]
    result = getattr(nn, name)(*map(device.array, operands), *line.more, **line.options).numpy()
    if line.to_bool:
        right = line.reference(*(np.where(np.abs(x) < SMALLEST, 0, x) for x in operands))
        assert (result == right).all()
        return 0.0
    part, at = excess(line, operands, result)
    assert part <= 1, f"{name}{line.more} is {part:.3g} times as far off as it may be, at {at}"
    return part


@pytest.mark.parametrize("name", OF_FLOATS)
def test_error(base: Device, name: str) -> None:
    for line in lines(name):
        check(base, name, line, 5000)


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_FLOATS)
def test_error_at_many_points(base: Device, name: str) -> None:
    for line in lines(name):
        check(base, name, line, 400_000)


@pytest.mark.parametrize("name", [name for name in TABLE if any(line.whole for line in lines(name))])
@pytest.mark.parametrize("dtype", [INT8, INT32], ids=str)
def test_integers(base: Device, name: str, dtype: np.dtype[Any]) -> None:
    """int32 modulo 2^32; int8 saturated."""
    random, ends = np.random.default_rng(1), np.iinfo(dtype)
    for line in lines(name):
        if not line.whole or any(isinstance(number, float) for number in (*line.more, *line.options.values())):
            continue
        arrays = [random.integers(ends.min, ends.max + 1, 300).astype(dtype) for _ in range(line.arrays)]
        result = getattr(nn, name)(*map(base.array, arrays), *line.more, **line.options).numpy()
        more = [None if number is None else np.int64(number) for number in line.more]
        with np.errstate(over="ignore"):
            right = np.asarray(line.reference(*(x.astype(np.int64) for x in arrays), *more))
        right = np.clip(right.astype(np.int32), -128, 127) if dtype == INT8 else right.astype(np.int64).astype(np.int32)
        assert (result == right).all()
