"""Random numbers by counting: each element hashes its number and a seed, so bits depend on these alone.

The hash is 32 bits wide: x ^= x >> 16, x *= 0x7FEB352D, x ^= x >> 15, x *= 0x846CA68B, x ^= x >> 16 (C. Wellons'
lowbias32), of the element's number plus the lower half of the seed, and again with the upper half. It is no source for
secrets.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import UnsupportedType
from sley.runtime.nn.elements import times_both
from sley.runtime.nn.functions import cos_tile
from sley.runtime.nn.mapping import BOOL, FP32, mapped
from sley.runtime.tile import language as tile

MOST = 1 << 31
"""Elements of an array of random numbers."""


def rand(
    device: Device,
    shape: tuple[int, ...],
    seed: int | Buffer,
    dtype: DTypeLike = np.float32,
    *,
    stream: Stream | None = None,
) -> Buffer:
    """Numbers from 0 to below 1, multiples of 2^-24, rounded to ``dtype``, float32 or bfloat16. ``seed``: 0 to
    2^64 - 1, or its ``halves`` on the device, which a graph reads at each launch. Raises ``BadRequest``,
    ``UnsupportedType``."""
    return _drawn(device, shape, seed, _uniform, np.dtype(dtype), stream)


def randn(
    device: Device,
    shape: tuple[int, ...],
    seed: int | Buffer,
    dtype: DTypeLike = np.float32,
    *,
    stream: Stream | None = None,
) -> Buffer:
    """Numbers of the normal distribution, by the method of Box and Muller: sqrt(-2 · log(1 - u)) · cos(2 · pi · v).
    ``seed``: as of ``rand``."""
    return _drawn(device, shape, seed, _normal, np.dtype(dtype), stream)


class Dropped(NamedTuple):
    """``y``, and the mask, bool: where elements stayed."""

    y: Buffer
    mask: Buffer


def dropout(x: Buffer, p: float, seed: int | Buffer, *, stream: Stream | None = None) -> Dropped:
    """Each element is 0 with probability p, else x / (1 - p); ``dropout_backward`` is the same with the mask."""
    if not 0 <= p < 1:
        raise BadRequest(f"p is {p}; a probability from 0 to below 1")
    draws = rand(Device.of(x), x.shape, seed, stream=stream)
    mask = mapped("dropout", _stays, draws, float(p), dtype=BOOL, computed=FP32, stream=stream)
    return Dropped(dropout_backward(x, mask, p, stream=stream), mask)


def dropout_backward(grad: Buffer, mask: Buffer, p: float, *, stream: Stream | None = None) -> Buffer:
    """The gradient of ``dropout``: grad / (1 - p) where the mask is True, else 0."""
    return mapped("dropout", times_both, grad, mask, 1 / (1 - p), dtype=grad.dtype, computed=FP32, stream=stream)


@tile.kernel
def draw(out: Any, seeds: Any, function: Any, columns: int) -> None:
    """A row of random numbers; ``seeds``: both halves."""
    column = tile.block_id() * columns
    numbers = tile.iota((1, columns), 1) + column
    low, high = (tile.load(seeds, (0, place), (1, 1)) for place in (0, 1))
    tile.store(out, (0, column), function(numbers, low, high).to(out.dtype))


def _drawn(
    device: Device,
    shape: tuple[int, ...],
    seed: int | Buffer,
    function: Any,
    dtype: np.dtype[Any],
    stream: Stream | None,
) -> Buffer:
    count = math.prod(shape)
    if dtype not in (BF16, FP32):
        raise UnsupportedType(f"dtype is {dtype}; random numbers are float32 or bfloat16")
    if not 1 <= count < MOST:
        raise BadRequest(f"shape is {shape}; random arrays have 1 to {MOST - 1} elements")
    given = seed if isinstance(seed, Buffer) else device.array(halves(seed)[None])
    if given.shape != (1, 2) or given.dtype != np.int32:
        raise BadRequest(f"seed is {given!r}; both halves of a seed are int32 of shape (1, 2)")
    result = device.empty(shape, dtype)
    columns = min(count, device.config.accumulator_rows // 16 * device.config.array)
    draw[-(-count // columns)](result.reshape(1, count), given, function, columns, stream=stream)
    return result


def halves(seed: int) -> NDArray[np.int32]:
    """The lower and the upper 32 bits of a seed, as the device takes them. Raises ``BadRequest``."""
    if not 0 <= seed < 1 << 64:
        raise BadRequest(f"seed is {seed}; it is 0 to 2^64 - 1")
    return np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint32).view(np.int32)


def _hash(x: Any) -> Any:
    x = (x ^ tile.shift_right(x, 16)) * 0x7FEB352D
    x = (x ^ tile.shift_right(x, 15)) * (0x846CA68B - (1 << 32))
    return x ^ tile.shift_right(x, 16)


def _bits(numbers: Any, low: Any, high: Any) -> Any:
    return _hash(_hash(numbers + low) + high)


def _fraction(bits: Any) -> Any:
    return tile.shift_right(bits, 8).to(ElementType.FP32) * 2.0**-24


def _uniform(numbers: Any, low: Any, high: Any) -> Any:
    return _fraction(_bits(numbers, low, high))


def _normal(numbers: Any, low: Any, high: Any) -> Any:
    first = _bits(numbers, low, high)
    radius = tile.sqrt(tile.log(1.0 - _fraction(first)) * -2.0)
    return cos_tile(_fraction(_hash(first + 1)) * (2 * math.pi)) * radius


def _stays(draw: Any, p: float) -> Any:
    return draw >= p
