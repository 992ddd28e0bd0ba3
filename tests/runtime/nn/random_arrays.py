"""Arrays of any shape, type and strides, with the extremes of each type among their elements."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.runtime import Buffer, Device
from sley.runtime.nn.mapping import BF16, BOOL, FP32, INT8, INT32

SIZES = (1, 1, 2, 3, 5, 7, 15, 16, 17, 31, 33)
WHOLE = {INT8: (-128, -1, 0, 1, 127), INT32: (-(1 << 31), -(1 << 24) - 1, -1, 0, 1, (1 << 24) + 1, (1 << 31) - 1)}
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 1e-40, -1e-40, 2.0**-126, 3.3e38, -3.3e38, 88.8, -103.9)


def values(
    random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], special: float = 0.1
) -> NDArray[Any]:
    """Random elements, so many of them special ones."""
    if dtype == BOOL:
        return random.integers(0, 2, shape).astype(bool)
    if dtype in WHOLE:
        high = 128 if dtype == INT8 else 1 << int(random.choice([4, 12, 31]))
        found, ends = random.integers(-high, high, shape), WHOLE[dtype]
    else:
        found, ends = random.standard_normal(shape) * random.choice([1e-3, 1, 30]), SPECIAL
    chosen = random.random(shape) < special
    with np.errstate(over="ignore"):
        return np.asarray(np.where(chosen, random.choice(ends, shape), found)).astype(dtype)


def shape_of(random: np.random.Generator, axes: int | None = None, most: int = 2500) -> tuple[int, ...]:
    """Of 0 to 6 axes."""
    axes = int(random.integers(0, 7)) if axes is None else axes
    while True:
        shape = tuple(int(side) for side in random.choice(SIZES, axes))
        if math.prod(shape) <= most:
            return shape


def narrowed(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that is broadcast to this one."""
    found = tuple(1 if random.random() < 0.25 else side for side in shape)
    return found[int(random.integers(0, len(shape) + 1)) :] if random.random() < 0.25 else found


def view(
    random: np.random.Generator, device: Device, array: NDArray[Any], orders: bool = True, last: bool = True
) -> Buffer:
    """The array on the device, perhaps as a part, with steps, of a larger one whose axes have another order.

    ``orders``: whether they may. ``last``: whether the last axis may have steps.
    """
    ndim = array.ndim
    order = random.permutation(ndim) if orders and random.random() < 0.5 else np.arange(ndim)
    steps = np.where(random.random(ndim) < 0.2, random.integers(2, 4, ndim), 1)
    starts = np.where(random.random(ndim) < 0.25, random.integers(1, 4, ndim), 0)
    if not last and ndim:
        steps[-1] = 1
    index = tuple(
        slice(int(start), int(start) + (side - 1) * int(step) + 1, int(step))
        for side, step, start in zip(array.shape, steps, starts, strict=True)
    )
    room = tuple(part.stop + int(random.integers(0, 2)) for part in index)
    whole = values(random, room, array.dtype)
    whole[index] = array
    made = device.array(whole.transpose(order).copy())
    return made.transpose(*np.argsort(order).tolist())[index]


def any_type(random: np.random.Generator) -> np.dtype[Any]:
    return np.dtype([BOOL, INT8, INT32, BF16, FP32][int(random.integers(0, 5))])


def any_integer(random: np.random.Generator) -> np.dtype[Any]:
    return np.dtype([BOOL, INT8, INT32][int(random.integers(0, 3))])
