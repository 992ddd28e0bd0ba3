"""Pooling of any number of dimensions and any type, tap by tap, and gradients of pooling.

Arrays have their channels last: [images, ..., channels]. ``max_pool2d`` and ``avg_pool2d`` of int8 and bfloat16 are
programs of their own; these are sums and maxima of views, float32 between taps.

Parameters of all
-----------------
x: [images, ..., channels], int8, bfloat16 or float32.
window, stride, padding, dilation: one number, or one for each dimension; stride is the window by default. Padding is
    -inf for a maximum, zeros for a mean.
stream: where to run; the device's default stream if not given.

They raise ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.nn import sums
from sley.runtime.nn.elements import plus, same, times
from sley.runtime.nn.mapping import FP32, cast, mapped, mapped_many
from sley.runtime.nn.shapes import copy, full, pad
from sley.runtime.tile import language as tile

Sides = int | tuple[int, ...]
LOWEST = -float("inf")


@dataclass(frozen=True)
class Windows:
    """Windows over images, each number for each dimension."""

    sizes: tuple[int, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    @classmethod
    def of(cls, x: Buffer, window: Sides, stride: Sides | None, padding: Sides, dilation: Sides = 1) -> Windows:
        """Raises ``ShapeMismatch``, ``BadRequest``."""
        sides = x.ndim - 2
        if sides < 1 or 0 in x.shape:
            raise ShapeMismatch(
                f"x has shape {x.shape}; it is [images, ..., channels], with one dimension or more between"
            )
        given = {
            "window": window,
            "stride": window if stride is None else stride,
            "padding": padding,
            "dilation": dilation,
        }
        found = {}
        for name, value in given.items():
            numbers = (value,) * sides if isinstance(value, int) else tuple(value)
            if len(numbers) != sides or min(numbers) < (0 if name == "padding" else 1):
                raise BadRequest(f"{name} is {value!r}; it is one number, or {sides}, each large enough")
            found[name] = numbers
        windows = cls(x.shape[1:-1], **found)
        if min(windows.out) < 1:
            raise ShapeMismatch(
                f"windows of {windows.window} on images of {windows.sizes} with padding {windows.padding}"
            )
        return windows

    @property
    def out(self) -> tuple[int, ...]:
        """Windows along each dimension."""
        every = zip(self.sizes, self.window, self.stride, self.padding, self.dilation, strict=True)
        return tuple(
            (size + 2 * pads - (taps - 1) * spread - 1) // step + 1 for size, taps, step, pads, spread in every
        )

    @property
    def pads(self) -> list[tuple[int, int]]:
        """Elements in front and behind that windows see, along each dimension and channels."""
        every = zip(self.sizes, self.window, self.stride, self.padding, self.dilation, self.out, strict=True)
        ends = [
            (pads, max((out - 1) * step + (taps - 1) * spread + 1 - pads - size, 0))
            for size, taps, step, pads, spread, out in every
        ]
        return [*ends, (0, 0)]

    def taps(self, padded: Buffer) -> Iterator[Buffer]:
        """For each tap, the elements of padded images that it sees."""
        for numbers in product(*(range(taps) for taps in self.window)):
            spots = []
            for number, step, spread, out in zip(numbers, self.stride, self.dilation, self.out, strict=True):
                first = number * spread
                spots.append(slice(first, first + (out - 1) * step + 1, step))
            yield padded[(slice(None), *spots)]


def max_pool(
    x: Buffer,
    window: Sides,
    *,
    stride: Sides | None = None,
    padding: Sides = 0,
    dilation: Sides = 1,
    stream: Stream | None = None,
) -> Buffer:
    """The largest element under each window, NaN if one is."""
    windows = Windows.of(x, window, stride, padding, dilation)
    lowest = LOWEST if x.dtype.kind not in "i" else int(np.iinfo(x.dtype).min)
    padded = _padded(x, windows, lowest, stream)
    result: Buffer | None = None
    for seen in windows.taps(padded):
        if result is None:
            result = copy(seen, stream=stream)
        else:
            mapped("max_pool", tile.maximum, result, seen, out=result, stream=stream)
    assert result is not None
    return result


def max_pool_places(
    x: Buffer,
    y: Buffer,
    numbers: Buffer,
    window: Sides,
    *,
    stride: Sides | None = None,
    dilation: Sides = 1,
    stream: Stream | None = None,
) -> Buffer:
    """For each element y of ``max_pool`` of x, without padding, the number of the first element under the window that
    is equal to it, int32; 0 if y is NaN.

    Parameters
    ----------
    numbers: of elements of x, int32 up to 2^24, broadcast to its shape.
    """
    windows, device = Windows.of(x, window, stride, 0, dilation), Device.of(x)
    found, left = full(device, y.shape, 0, FP32, stream=stream), full(device, y.shape, 1, FP32, stream=stream)
    for seen, number in zip(windows.taps(x), windows.taps(numbers), strict=True):
        operands, outs = [found, left, number, seen, y], [found, left]
        mapped_many(
            "max_pool_places", _first_hit, *operands, dtypes=[FP32] * 2, computed=FP32, outs=outs, stream=stream
        )
    return cast(found, np.int32, stream=stream)


def avg_pool(
    x: Buffer,
    window: Sides,
    *,
    stride: Sides | None = None,
    padding: Sides = 0,
    count_include_pad: bool = True,
    stream: Stream | None = None,
) -> Buffer:
    """The mean under each window: the sum in fp32, tap after tap, times 1 / taps, of those inside of the image if
    padding does not count.
    """
    windows = Windows.of(x, window, stride, padding)
    total = _sum(_padded(x, windows, 0, stream), windows, stream)
    return mapped(
        "avg_pool", times, total, _shares(x, windows, count_include_pad), dtype=x.dtype, computed=FP32, stream=stream
    )


def sum_pool(
    x: Buffer,
    window: Sides,
    *,
    stride: Sides | None = None,
    padding: Sides = 0,
    dilation: Sides = 1,
    stream: Stream | None = None,
) -> Buffer:
    """The sum under each window, float32, tap after tap."""
    windows = Windows.of(x, window, stride, padding, dilation)
    return _sum(_padded(x, windows, 0, stream), windows, stream)


def lp_pool(
    x: Buffer,
    power: float,
    window: Sides,
    *,
    stride: Sides | None = None,
    dilation: Sides = 1,
    stream: Stream | None = None,
) -> Buffer:
    """The root of order ``power``, a whole number of 1 or more, of the sum of |x|^power under each window; from 3 on as
    2^(log2 / power)."""
    if power < 1 or power != int(power):
        raise BadRequest(f"power is {power}; it is a whole number of 1 or more")
    windows = Windows.of(x, window, stride, 0, dilation)
    values = mapped("lp_pool", _raised, x, int(power), dtype=FP32, computed=FP32, stream=stream)
    total = _sum(values, windows, stream)
    if power <= 2:
        return mapped("lp_pool", same if power == 1 else tile.sqrt, total, dtype=x.dtype, computed=FP32, stream=stream)
    return mapped("lp_pool", _any_root, total, 1 / power, dtype=x.dtype, computed=FP32, stream=stream)


def adaptive_avg_pool(x: Buffer, sizes: Sides, *, stream: Stream | None = None) -> Buffer:
    """Means of so many parts along each dimension: part i of n begins at floor(i · size / n) and ends at ceil((i + 1) ·
    size / n).
    """
    return _adaptive(x, sizes, sums.mean, stream)


def adaptive_max_pool(x: Buffer, sizes: Sides, *, stream: Stream | None = None) -> Buffer:
    """The largest elements of the parts of ``adaptive_avg_pool``."""
    return _adaptive(x, sizes, sums.amax, stream)


def max_pool_backward(
    grad: Buffer,
    x: Buffer,
    y: Buffer,
    window: Sides,
    *,
    stride: Sides | None = None,
    padding: Sides = 0,
    dilation: Sides = 1,
    stream: Stream | None = None,
) -> Buffer:
    """The gradient of ``max_pool`` and ``max_pool2d`` by their result: it goes to the first element under the window
    that is equal to the largest one. Of the type of x; added in fp32, tap after tap.
    """
    windows = Windows.of(x, window, stride, padding, dilation)
    device = Device.of(x)
    padded = _padded(x, windows, LOWEST, stream)
    total = full(device, padded.shape, 0, np.float32, stream=stream)
    left = full(device, y.shape, 1, np.float32, stream=stream)
    for seen, target in zip(windows.taps(padded), windows.taps(total), strict=True):
        mapped_many(
            "max_pool_backward",
            _first_hit,
            target,
            left,
            grad,
            seen,
            y,
            dtypes=[FP32, FP32],
            computed=FP32,
            outs=[target, left],
            stream=stream,
        )
    return _inside(total, windows, x, stream)


def avg_pool_backward(
    grad: Buffer,
    x: Buffer,
    window: Sides,
    *,
    stride: Sides | None = None,
    padding: Sides = 0,
    count_include_pad: bool = True,
    stream: Stream | None = None,
) -> Buffer:
    """The gradient of ``avg_pool`` and ``avg_pool2d``: each element gets 1 / taps of it from each window that sees it.
    Of the type of x, whose shape alone is used; added in fp32, tap after tap.
    """
    windows = Windows.of(x, window, stride, padding)
    shape = tuple(size + before + behind for size, (before, behind) in zip(x.shape[1:], windows.pads, strict=True))
    total = full(Device.of(x), (x.shape[0], *shape), 0, np.float32, stream=stream)
    shares = _shares(x, windows, count_include_pad)
    share = mapped("avg_pool_backward", times, grad, shares, dtype=FP32, computed=FP32, stream=stream)
    for target in windows.taps(total):
        mapped("avg_pool_backward", plus, target, share, out=target, stream=stream)
    return _inside(total, windows, x, stream)


def _padded(x: Buffer, windows: Windows, value: float, stream: Stream | None) -> Buffer:
    if not any(sum(pair) for pair in windows.pads):
        return x
    return pad(x, windows.pads, value, stream=stream)


def _inside(total: Buffer, windows: Windows, x: Buffer, stream: Stream | None) -> Buffer:
    spots = [slice(before, before + size) for (before, _), size in zip(windows.pads, x.shape[1:], strict=True)]
    return cast(total[(slice(None), *spots)], x.dtype, stream=stream)


def _sum(padded: Buffer, windows: Windows, stream: Stream | None) -> Buffer:
    result: Buffer | None = None
    for seen in windows.taps(padded):
        if result is None:
            result = cast(seen, np.float32, stream=stream)
        else:
            mapped("avg_pool", plus, result, seen, dtype=FP32, out=result, stream=stream)
    assert result is not None
    return result


def _shares(x: Buffer, windows: Windows, count_include_pad: bool) -> Buffer | float:
    """1 / taps, for each window if they differ."""
    if count_include_pad or not any(windows.padding):
        return 1 / math.prod(windows.window)
    counts = np.ones((1,) * len(windows.sizes))
    every = zip(windows.sizes, windows.window, windows.stride, windows.padding, windows.out, strict=True)
    for number, (size, taps, step, pads, out) in enumerate(every):
        starts = np.arange(out) * step - pads
        seen = np.minimum(starts + taps, size) - np.maximum(starts, 0)
        counts = counts * seen.reshape([-1 if axis == number else 1 for axis in range(len(windows.sizes))])
    return Device.of(x).array((1 / counts).astype(np.float32)[..., None])


def _adaptive(x: Buffer, sizes: Sides, reduce: Any, stream: Stream | None) -> Buffer:
    sides = x.ndim - 2
    wanted = (sizes,) * sides if isinstance(sizes, int) else tuple(sizes)
    if len(wanted) != sides or min(wanted, default=0) < 1:
        raise BadRequest(f"sizes are {sizes!r}; give one number, or {sides}, of 1 or more")
    result = Device.of(x).empty((x.shape[0], *wanted, x.shape[-1]), x.dtype)
    axes = tuple(range(1, x.ndim - 1))
    for index in product(*(range(count) for count in wanted)):
        spots = [
            slice(i * size // count, -(-(i + 1) * size // count))
            for i, size, count in zip(index, x.shape[1:-1], wanted, strict=True)
        ]
        part = copy(x[(slice(None), *spots)], stream=stream)
        reduce(part, axes, out=result[(slice(None), *index)], stream=stream)
    return result


def _raised(x: Any, power: float) -> Any:
    size = tile.maximum(x, -x)
    result = size
    for _ in range(int(power) - 1):
        result = result * size
    return result


def _any_root(x: Any, share: float) -> Any:
    return tile.exp2(tile.log2(x) * share)


def _first_hit(total: Any, left: Any, grad: Any, seen: Any, largest: Any) -> tuple[Any, Any]:
    hit = (seen == largest) * left
    return hit * grad + total, left - hit
