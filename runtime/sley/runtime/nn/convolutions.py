"""Convolutions of one and three dimensions, transposed ones, and gradients; on ``conv2d`` and ``matmul``.

Arrays have their channels last: [images, ..., channels]; weights are [taps ..., channels / groups, outputs]. ``conv2d``
packs weights on the host, so those of the device are read back, which waits for all work so far. Parameters that are
not described are those of ``conv2d``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.kernels.gemm.limits import check_depth
from sley.runtime.nn import sums
from sley.runtime.nn.columns import row_of, scale_of
from sley.runtime.nn.conv2d import conv2d
from sley.runtime.nn.elements import plus
from sley.runtime.nn.images import Padding, Pair, axes_of, pair_of
from sley.runtime.nn.mapping import FP32, INT8, cast, mapped
from sley.runtime.nn.matrices import matmul
from sley.runtime.nn.shapes import copy, full, pad
from sley.runtime.nn.weights import host
from sley.runtime.tile import language as tile

Weights = Buffer | ArrayLike


def conv1d(
    x: Buffer,
    w: Weights,
    *,
    stride: int = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int = 1,
    groups: int = 1,
    stream: Stream | None = None,
    **more: Any,
) -> Buffer:
    """Of [images, x, channels] and [taps, channels / groups, outputs], as ``conv2d`` of images of one row, with its
    arguments."""
    values = host(w)
    _check_axes("conv1d", x, values, 1)
    sides = padding if isinstance(padding, tuple) else (padding, padding)
    image, taps = x[:, None], values.reshape(1, *values.shape)
    result = conv2d(
        image,
        taps,
        stride=(1, stride),
        padding=((0, 0), sides),
        dilation=(1, dilation),
        groups=groups,
        stream=stream,
        **more,
    )
    return result.reshape(result.shape[0], *result.shape[2:])


def conv3d(
    x: Buffer,
    w: Weights,
    *,
    stride: int | tuple[int, int, int] = 1,
    padding: int | tuple[int, int, int] = 0,
    dilation: int | tuple[int, int, int] = 1,
    groups: int = 1,
    bias: Buffer | ArrayLike | None = None,
    scale: float | Buffer | ArrayLike | None = None,
    relu: bool = False,
    dtype: Any = None,
    precision: str = "highest",
    stream: Stream | None = None,
) -> Buffer:
    """Of [images, z, y, x, channels] and [taps z, taps y, taps x, channels / groups, outputs].

    The sum of convolutions of planes, one for each tap along z, added in their order, in fp32, of int8 exactly in
    int32; then bias, scale and ``relu`` as in ``conv2d``, which int8 needs a scale for. ``dtype``: of the result; by
    default float32, of int8 int32, with a scale int8.
    """
    values = host(w)
    _check_axes("conv3d", x, values, 3)
    steps, pads, spreads = ((value,) * 3 if isinstance(value, int) else value for value in (stride, padding, dilation))
    if pads[0]:
        x = pad(x, [(pads[0], pads[0]), (0, 0), (0, 0), (0, 0)], stream=stream)
    images, depth = x.shape[:2]
    planes = (depth - (values.shape[0] - 1) * spreads[0] - 1) // steps[0] + 1
    if planes < 1:
        raise ShapeMismatch(
            f"the window is {(values.shape[0] - 1) * spreads[0] + 1} planes, x with its padding {depth}"
        )
    whole, taps = x.dtype == INT8, math.prod(values.shape[:-1])
    if whole:
        check_depth(ElementType.INT8, taps)
        if scale is None and (bias is not None or relu or dtype not in (None, np.int32)):
            raise BadRequest("bias, relu and results that are not int32 need a scale of int8 operands: give scale=1.0")
    outputs, sums_type = values.shape[-1], np.dtype(np.int32) if whole else FP32
    device = Device.of(x)
    row = None if bias is None else row_of(device, "bias", bias, sums_type, outputs, "outputs")
    if row is not None and whole:
        row.check_bound((1 << 31) - 1 - taps * 128 * 128, "bias of conv3d")
    factor = scale_of(device, scale, outputs, "outputs")
    parts = []
    for image in range(images):
        total: Buffer | None = None
        for tap in range(values.shape[0]):
            first = tap * spreads[0]
            section = x[image, first : first + (planes - 1) * steps[0] + 1 : steps[0]]
            found = conv2d(
                section,
                values[tap],
                stride=steps[1:],
                padding=pads[1:],
                dilation=spreads[1:],
                groups=groups,
                dtype=sums_type,
                precision=precision,
                stream=stream,
            )
            total = found if total is None else mapped("conv3d", plus, total, found, out=total, stream=stream)
        assert total is not None
        parts.append(total)
    kind = np.dtype(dtype) if dtype is not None else INT8 if whole and scale is not None else sums_type
    result = device.empty((images, *parts[0].shape), kind)
    function = _ended_relu if relu else _ended
    for image, part in enumerate(parts):
        if whole and row is not None:
            mapped("conv3d", plus, part, row, out=part, stream=stream)
        if whole and factor is None:
            copy(part, out=result[image], stream=stream)
            continue
        added: Any = 0.0 if row is None or whole else row
        more = (added, 1.0 if factor is None else factor)
        mapped("conv3d", function, part, *more, dtype=kind, computed=FP32, out=result[image], stream=stream)
    return result


def _ended(x: Any, bias: Any, scale: Any) -> Any:
    return (x + bias) * scale


def _ended_relu(x: Any, bias: Any, scale: Any) -> Any:
    return tile.maximum((x + bias) * scale, 0.0)


def conv_transpose2d(
    x: Buffer,
    w: Weights,
    *,
    stride: Pair = 1,
    padding: Pair = 0,
    output_padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
    bias: Buffer | ArrayLike | None = None,
    scale: float | Buffer | ArrayLike | None = None,
    relu: bool = False,
    dtype: Any = None,
    precision: str = "highest",
    stream: Stream | None = None,
) -> Buffer:
    """The gradient of ``conv2d`` with weights ``w`` for its images: x [images, y, x, outputs of w] to [images, y, x,
    channels].

        Pixels of x are put ``stride`` apart among zeros; a convolution with the taps the other way round follows.
        ``output_padding``: rows and columns more at the end, less than stride or dilation. Types, bias, scale and relu
        are those of ``conv2d``.
    """
    values = host(w)
    _check_axes("conv_transpose2d", x, values, 2)
    steps, pads, more, spreads = (
        pair_of(name, value, least)
        for name, value, least in (
            ("stride", stride, 1),
            ("padding", padding, 0),
            ("output_padding", output_padding, 0),
            ("dilation", dilation, 1),
        )
    )
    if values.shape[3] != x.shape[3]:
        raise ShapeMismatch(f"w has {values.shape[3]} outputs and x {x.shape[3]} channels; they are the same")
    wide = [(taps - 1) * spread for taps, spread in zip(values.shape[:2], spreads, strict=True)]
    edges = [(w - p, w - p + m) for w, p, m in zip(wide, pads, more, strict=True)]
    spaced = spaced_out(x, steps, stream)
    for axis, (before, behind) in enumerate(edges):  # padding of more than the window cuts rows off
        size = spaced.shape[1 + axis]
        spaced = spaced[(*[slice(None)] * (1 + axis), slice(max(-before, 0), size - max(-behind, 0)))]
    kept = tuple((max(before, 0), max(behind, 0)) for before, behind in edges)
    return conv2d(
        spaced,
        flipped(values, groups),
        padding=(kept[0], kept[1]),
        dilation=spreads,
        groups=groups,
        bias=bias,
        scale=scale,
        relu=relu,
        dtype=dtype,
        precision=precision,
        stream=stream,
    )


class ConvGradients(NamedTuple):
    """Of x, of its type; of weights and bias, float32."""

    x: Buffer
    w: Buffer
    bias: Buffer


def conv2d_backward(
    grad: Buffer,
    x: Buffer,
    w: Weights,
    *,
    stride: Pair = 1,
    padding: Padding = 0,
    dilation: Pair = 1,
    groups: int = 1,
    precision: str = "highest",
    stream: Stream | None = None,
) -> ConvGradients:
    """Gradients of ``conv2d`` of bfloat16 or float32: of x, ``conv_transpose2d`` of grad; of each tap of w, the product
    of the pixels that it saw, transposed, with grad; of bias, the sum of grad over all pixels.
    """
    values = host(w)
    axes = axes_of(x.shape, values.shape[:2], stride, padding, dilation)
    steps, spreads = pair_of("stride", stride, 1), pair_of("dilation", dilation, 1)
    pads, more = tuple(axis.pad for axis in axes), []
    for axis in axes:
        more.append(axis.size - ((axis.out - 1) * axis.stride - 2 * axis.pad + (axis.taps - 1) * axis.dilation + 1))
    of_x = _image_gradient(
        grad, values, (steps, (pads[0], pads[1]), spreads), (more[0], more[1]), groups, precision, stream
    )
    of_x = of_x if of_x.dtype == x.dtype else cast(of_x, x.dtype, stream=stream)
    padded = pad(x, [_sides(axes[0]), _sides(axes[1]), (0, 0)], stream=stream)
    of_w = Device.of(x).empty(values.shape, np.dtype(np.float32))
    rows, each, outputs = grad.reshape(-1, grad.shape[3]), x.shape[3] // groups, grad.shape[3] // groups
    for tap in product(range(values.shape[0]), range(values.shape[1])):
        seen = _seen(padded, tap, axes)
        flat = copy(seen, stream=stream).reshape(-1, x.shape[3])
        for group in range(groups):
            channels = flat[:, group * each : (group + 1) * each]
            part = rows[:, group * outputs : (group + 1) * outputs]
            target = of_w[tap[0], tap[1], :, group * outputs : (group + 1) * outputs]
            matmul(channels.T, part, dtype=np.float32, precision=precision, out=target, stream=stream)
    wide = rows if rows.dtype == FP32 else cast(rows, np.float32, stream=stream)
    return ConvGradients(of_x, of_w, sums.sum(wide, 0, stream=stream))


def flipped(values: np.ndarray, groups: int) -> np.ndarray:
    """Weights of the gradient: taps the other way round, channels and outputs of each group exchanged."""
    *taps, channels, outputs = values.shape
    parts = np.flip(values, tuple(range(len(taps)))).reshape(*taps, channels, groups, outputs // groups)
    return np.ascontiguousarray(np.swapaxes(parts, -1, -3).reshape(*taps, outputs // groups, -1))


def _check_axes(operator: str, x: Buffer, values: np.ndarray, sides: int) -> None:
    if x.ndim != sides + 2 or values.ndim != sides + 2:
        raise ShapeMismatch(
            f"{operator} of x of shape {x.shape} and w of shape {values.shape}; both have {sides + 2} axes"
        )


def spaced_out(x: Buffer, steps: Sequence[int], stream: Stream | None) -> Buffer:
    """Images with pixels so far apart, zeros between them."""
    if max(steps) == 1:
        return x
    sides = [(size - 1) * step + 1 for size, step in zip(x.shape[1:-1], steps, strict=True)]
    result = full(Device.of(x), (x.shape[0], *sides, x.shape[-1]), 0, x.dtype, stream=stream)
    copy(x, out=result[(slice(None), *(slice(None, None, step) for step in steps))], stream=stream)
    return result


def _image_gradient(
    grad: Buffer,
    values: np.ndarray,
    geometry: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
    more: tuple[int, int],
    groups: int,
    precision: str,
    stream: Stream | None,
) -> Buffer:
    """``conv_transpose2d`` with padding that is not the same on both sides, as a larger or smaller output padding."""
    steps, pads, spreads = geometry
    extra = tuple(max(value, 0) for value in more)
    found = conv_transpose2d(
        grad,
        values,
        stride=steps,
        padding=pads,
        output_padding=(extra[0], extra[1]),
        dilation=spreads,
        groups=groups,
        dtype=grad.dtype,
        precision=precision,
        stream=stream,
    )
    height, width = (size + min(value, 0) for size, value in zip(found.shape[1:3], more, strict=True))
    return found if (height, width) == found.shape[1:3] else copy(found[:, :height, :width], stream=stream)


def _sides(axis: Any) -> tuple[int, int]:
    behind = (axis.out - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1 - axis.pad - axis.size
    return axis.pad, max(behind, 0)


def _seen(padded: Buffer, tap: tuple[int, int], axes: Any) -> Buffer:
    """The pixels that a tap of the windows sees."""
    spots = []
    for number, axis in zip(tap, axes, strict=True):
        first = number * axis.dilation
        spots.append(slice(first, first + (axis.out - 1) * axis.stride + 1, axis.stride))
    return padded[:, spots[0], spots[1]]
