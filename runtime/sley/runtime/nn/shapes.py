"""Arrays of other shapes: copies, joined, repeated, filled, enlarged arrays.

Elements of bfloat16 are copied as numbers: subnormal ones become 0. Parameters of all: ``x``, of bool, int8, int32,
bfloat16 or float32; ``out``, ``stream`` as everywhere. Where elements do not lie side by side along the axis along
which those of the result do, each one takes some 10 cycles. They raise ``ShapeMismatch``, ``UnsupportedType``,
``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.nn.elements import same
from sley.runtime.nn.mapping import cast, mapped
from sley.runtime.nn.reducing import normal_axes
from sley.runtime.nn.sums import axes_of
from sley.runtime.tile import language as tile

Pads = Sequence[tuple[int, int]]


def copy(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """A copy, row-major if ``out`` does not say otherwise."""
    return cast(x, x.dtype, out=out, stream=stream)


def broadcast_to(
    x: Buffer, shape: tuple[int, ...], *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """A copy that x's axes of one element, and axes in front, are repeated in."""
    return mapped("broadcast_to", same, x, computed=x.dtype, shape=shape, out=out, stream=stream)


def concat(
    arrays: Sequence[Buffer], axis: int = 0, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """Arrays one behind the other along an axis."""
    result, places = joined_result("concat", arrays, axis, out)
    for array, place in zip(arrays, places, strict=True):
        copy(array, out=result[place], stream=stream)
    return result


def joined_result(
    operator: str, arrays: Sequence[Buffer], axis: int, out: Buffer | None
) -> tuple[Buffer, list[tuple[slice, ...]]]:
    """An array for arrays one behind the other along an axis, and where each goes. Raises ``ShapeMismatch``."""
    if not arrays:
        raise ShapeMismatch(f"{operator} of no arrays; give at least one")
    (place,) = axes_of(arrays[0], axis, operator)
    rest = {array.shape[:place] + array.shape[place + 1 :] for array in arrays}
    if len(rest) > 1 or len({array.dtype for array in arrays}) > 1:
        raise ShapeMismatch(
            f"{operator} along axis {axis} of {', '.join(map(repr, arrays))}: they have one type, and equal other axes"
        )
    ends = list(accumulate(array.shape[place] for array in arrays))
    shape = (*arrays[0].shape[:place], ends[-1], *arrays[0].shape[place + 1 :])
    before = [slice(None)] * place
    places = [(*before, slice(start, end)) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return _result(arrays[0], shape, out), places


def stack(
    arrays: Sequence[Buffer], axis: int = 0, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """Arrays of one shape along a new axis."""
    if not arrays or len({array.shape for array in arrays}) > 1:
        raise ShapeMismatch("stack takes one array or more, of one shape")
    (place,) = normal_axes("stack", [axis], arrays[0].ndim + 1)
    index = (*[slice(None)] * place, None)
    return concat([array[index] for array in arrays], place, out=out, stream=stream)


def split(x: Buffer, sizes: int | Sequence[int], axis: int = 0) -> list[Buffer]:
    """Views of x along an axis: of so many elements each, the last one perhaps of fewer, or of these sizes."""
    (place,) = axes_of(x, axis, "split")
    whole = x.shape[place]
    if isinstance(sizes, int):
        if sizes < 1:
            raise BadRequest(f"parts of {sizes} elements; they have 1 or more")
        sizes = [min(sizes, whole - start) for start in range(0, whole, sizes)]
    if sum(sizes) != whole or min(sizes, default=0) < 0:
        raise ShapeMismatch(f"parts of {list(sizes)} elements of {whole}; they must add up to it")
    ends = np.cumsum(sizes).tolist()
    index = [slice(None)] * place
    return [x[(*index, slice(end - size, end))] for size, end in zip(sizes, ends, strict=True)]


def pad(x: Buffer, pads: Pads, value: float = 0, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x with so many elements of ``value`` in front and behind along its last axes, one pair for each of them."""
    if len(pads) > x.ndim or any(min(pair) < 0 for pair in pads):
        raise ShapeMismatch(f"pads are {list(pads)}; there is a pair of numbers of 0 or more for each of the last axes")
    every = [(0, 0)] * (x.ndim - len(pads)) + [tuple(pair) for pair in pads]
    shape = tuple(before + size + after for (before, after), size in zip(every, x.shape, strict=True))
    result = full(Device.of(x), shape, value, x.dtype, out=out, stream=stream)
    copy(x, out=result[tuple(slice(b, b + size) for (b, _), size in zip(every, x.shape, strict=True))], stream=stream)
    return result


def full(
    device: Device,
    shape: tuple[int, ...],
    value: float,
    dtype: DTypeLike = np.float32,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """An array of one value, written by the device."""
    kind = np.dtype(dtype)
    try:
        one = device.array(np.full((1,) * max(len(shape), 1), value, kind))
    except OverflowError:
        raise BadRequest(f"value is {value}, which {kind} has not") from None
    if out is not None and (out.shape != shape or out.dtype != kind):
        raise ShapeMismatch(f"out is {out!r}; the result is {kind} of shape {shape}")
    return mapped("full", same, one.reshape(*(1 for _ in shape)), computed=kind, shape=shape, out=out, stream=stream)


def tiled(x: Buffer, repeats: Sequence[int], *, stream: Stream | None = None) -> Buffer:
    """x repeated as a whole, so often along each of its last axes."""
    if len(repeats) > x.ndim:
        raise ShapeMismatch(f"repeats are {tuple(repeats)}; x has {x.ndim} axes, and at most one of them for each")
    counts = [1] * (x.ndim - len(repeats)) + list(repeats)
    shape = [size for pair in zip(counts, x.shape, strict=True) for size in pair]
    view = x[(None, slice(None)) * x.ndim]
    result = broadcast_to(view, tuple(shape), stream=stream)
    return result.reshape(*(count * side for count, side in zip(counts, x.shape, strict=True)))


def repeat(x: Buffer, count: int, axis: int, *, stream: Stream | None = None) -> Buffer:
    """x with each element so often, one copy beside the other, along an axis."""
    (place,) = axes_of(x, axis, "repeat")
    shape = (*x.shape[: place + 1], count, *x.shape[place + 1 :])
    view = x[(*[slice(None)] * (place + 1), None)]
    result = broadcast_to(view, shape, stream=stream)
    return result.reshape(*x.shape[:place], x.shape[place] * count, *x.shape[place + 1 :])


def roll(x: Buffer, shift: int, axis: int, *, stream: Stream | None = None) -> Buffer:
    """x moved along an axis; what leaves it at the end comes back at the beginning."""
    (place,) = axes_of(x, axis, "roll")
    cut = -shift % x.shape[place]
    first, second = split(x, [cut, x.shape[place] - cut], place)
    parts = [part for part in (second, first) if part.shape[place]]
    return concat(parts, place, stream=stream)


def flip(x: Buffer, axis: int, *, stream: Stream | None = None) -> Buffer:
    """x the other way round along an axis; a launch for each of its elements."""
    (place,) = axes_of(x, axis, "flip")
    return concat(split(x, 1, place)[::-1], place, stream=stream)


def upsample_nearest(x: Buffer, factor: int | tuple[int, int], *, stream: Stream | None = None) -> Buffer:
    """Images [images, y, x, channels] with each pixel so often along y and x."""
    rows, columns = (factor, factor) if isinstance(factor, int) else factor
    images, height, width, channels = _images("upsample_nearest", x)
    view = x[:, :, None, :, None]
    result = broadcast_to(view, (images, height, rows, width, columns, channels), stream=stream)
    return result.reshape(images, height * rows, width * columns, channels)


def pixel_shuffle(x: Buffer, factor: int, *, stream: Stream | None = None) -> Buffer:
    """Images [images, y, x, factor · factor · channels] as [images, y · factor, x · factor, channels]."""
    if factor < 1:
        raise BadRequest(f"factor is {factor}; it is 1 or more")
    images, height, width, depth = _images("pixel_shuffle", x)
    channels = depth // (factor * factor)
    if channels * factor * factor != depth:
        raise ShapeMismatch(f"{depth} channels; they are a multiple of {factor} · {factor}")
    view = x.reshape(images, height, width, factor, factor, channels).transpose(0, 1, 3, 2, 4, 5)
    result = Device.of(x).empty(view.shape, x.dtype)
    return copy(view, out=result, stream=stream).reshape(images, height * factor, width * factor, channels)


def tril(x: Buffer, diagonal: int = 0, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Matrices with 0 where the column is further right than row + diagonal."""
    return _triangle("tril", _lower, x, diagonal, out, stream)


def triu(x: Buffer, diagonal: int = 0, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Matrices with 0 where the column is further left than row + diagonal."""
    return _triangle("triu", _upper, x, diagonal, out, stream)


def _images(operator: str, x: Buffer) -> tuple[int, int, int, int]:
    if x.ndim != 4:
        raise ShapeMismatch(f"x has shape {x.shape}; {operator} takes images [images, y, x, channels]")
    images, height, width, channels = x.shape
    return images, height, width, channels


def _triangle(name: str, function: Any, x: Buffer, diagonal: int, out: Buffer | None, stream: Stream | None) -> Buffer:
    if x.ndim < 2:
        raise ShapeMismatch(f"x has shape {x.shape}; {name} takes matrices")
    device, (rows, columns) = Device.of(x), x.shape[-2:]
    kind = np.int32 if x.dtype.kind in "bi" else np.float32
    down = device.array(np.arange(rows, dtype=kind).reshape(rows, 1))
    across = device.array(np.arange(columns, dtype=kind))
    return mapped(name, function, x, down, across, diagonal, dtype=x.dtype, out=out, stream=stream)


def _result(x: Buffer, shape: tuple[int, ...], out: Buffer | None) -> Buffer:
    if out is None:
        return Device.of(x).empty(shape, x.dtype)
    if out.shape != shape or out.dtype != x.dtype:
        raise ShapeMismatch(f"out is {out!r}; the result is {x.dtype} of shape {shape}")
    return out


def _lower(x: Any, row: Any, column: Any, diagonal: Any) -> Any:
    return tile.where(column <= row + diagonal, x, 0)


def _upper(x: Any, row: Any, column: Any, diagonal: Any) -> Any:
    return tile.where(row + diagonal <= column, x, 0)
