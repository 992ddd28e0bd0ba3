"""Pooling of images."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import SupportsFloat

import numpy as np

from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.device.types import element_type
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.kernels.conv.problem import Axis, Steps
from sley.runtime.kernels.gemm.limits import check_operands
from sley.runtime.kernels.pool.launch import launch
from sley.runtime.kernels.pool.problem import Pool
from sley.runtime.nn.images import Padding, Pair, axes_of, check_dense, pair_of

MAX_TAPS = ((1 << 31) - 1) // 128
"""Of an average of int8: as many times -128 are a sum in int32."""


def max_pool2d(
    x: Buffer,
    window: Pair,
    *,
    stride: Pair | None = None,
    padding: Padding = 0,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """The largest value under each window of int8 or bf16 images [images, y, x, channels]; returns before the work is
    done.

    Exact, so the order does not matter: int8 compares int32, bf16 fp32. A NaN under the window gives NaN, +0 is larger
    than -0, subnormals count as zeros. Padding is -128 or minus infinity: it never wins, as each window sees a pixel.

    PyTorch differs where zeros of both signs meet (it takes the first one) and where subnormals are left; it bounds the
    padding by half the window, and has ``dilation``, ``ceil_mode`` and ``return_indices``.

    Parameters
    ----------
    x: images, channels last; a view if the channels of a pixel are contiguous.
    window: taps: one number, or those along y and x.
    stride: one number, or those along y and x; 1 or more. Default: the window.
    padding: pixels around the image, fewer than the window has: one number, those along y and x, or ((top, bottom),
        (left, right)).
    out: array for the result, [images, y, x, channels] of the type of ``x``; a new one if not given. A view if the
        channels of a pixel are contiguous; it has no byte in common with ``x``.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    _check_arrays("max_pool2d", x, out, stream)
    axes = _axes(x, window, stride, padding)
    problem, out = _problem(x, axes, BinaryOp.MAX, out)
    launch(stream or Device.of(x).stream, problem, x, out)
    return out


def avg_pool2d(
    x: Buffer,
    window: Pair,
    *,
    stride: Pair | None = None,
    padding: Padding = 0,
    count_include_pad: bool = True,
    scale: float = 1.0,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """The mean under each window of int8 or bf16 images [images, y, x, channels]; returns before the work is done.

    bf16 is added in fp32, tap after tap, row by row of the window, from its first one on; padding is +0. Each addition
    is rounded half to even. The sum is multiplied by scale / taps, an fp32 number, and the product rounded to bf16.
    int8 is summed exactly in int32; the sum is converted to fp32, multiplied by the same factor, rounded half to even
    and saturated.

    PyTorch divides by the number of taps; so the fp32 value before the last rounding may differ in its last bit. It
    has no int8 average that rounds (integers are divided and cut off), and has ``ceil_mode`` and ``divisor_override``.

    Parameters
    ----------
    window, stride, padding, out, stream: as for ``max_pool2d``.
    count_include_pad: whether padding counts as taps. If not, borders have factors of their own: their outputs are
        launches of their own.
    scale: factor of the mean, in the same product: of int8 the scale of x by that of the result.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    _check_arrays("avg_pool2d", x, out, stream)
    if not isinstance(scale, SupportsFloat) or not math.isfinite(float(scale)):
        raise BadRequest(f"scale is {scale!r}; it is a finite number")
    axes = _axes(x, window, stride, padding)
    problem, out = _problem(x, axes, BinaryOp.ADD, out)
    run = stream or Device.of(x).stream
    if count_include_pad:
        launch(run, problem, x, out, _factor(problem.taps, scale))
        return out
    for y0, y, taps_y in _parts(axes[0]):
        for x0, across, taps_x in _parts(axes[1]):
            part = replace(problem, y=y, x=across)
            row, column = axes[0].size - y.size, axes[1].size - across.size
            launch(run, part, x[:, row:, column:], out[:, y0:, x0:], _factor(taps_y * taps_x, scale))
    return out


def global_avg_pool2d(
    x: Buffer, *, scale: float = 1.0, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """The mean of each channel of each image, [images, 1, 1, channels]: ``avg_pool2d`` with the image as the window.

    The order is that of ``avg_pool2d``: pixel after pixel, row by row, rounded after every addition for bf16; PyTorch's
    adaptive average adds in an order of its own, and divides.

    Parameters
    ----------
    x, out, stream: as for ``max_pool2d``. scale: as for ``avg_pool2d``.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    _check_arrays("global_avg_pool2d", x, out, stream)
    if len(x.shape) != 4 or 0 in x.shape:
        raise ShapeMismatch(f"x has shape {x.shape}; images are [images, y, x, channels], each at least 1")
    return avg_pool2d(x, (x.shape[1], x.shape[2]), scale=scale, out=out, stream=stream)


def _factor(taps: int, scale: float) -> float:
    return float(np.float32(scale / taps))


def _check_arrays(name: str, x: Buffer, out: Buffer | None, stream: Stream | None) -> None:
    if not isinstance(x, Buffer):
        raise UnsupportedType(f"x is {type(x).__name__}; {name} takes images on the device: device.array(values)")
    if out is not None and not isinstance(out, Buffer):
        raise UnsupportedType(f"out is {type(out).__name__}; {name} writes to arrays of the device: use device.empty")
    if stream is not None and not isinstance(stream, Stream):
        raise UnsupportedType(f"stream is {stream!r}; give one of device.streams")
    for given in (x, out, stream):
        if given is not None:
            Device.of(x).check_owner(given)
    if element_type(x.dtype) not in (ElementType.INT8, ElementType.BF16):
        raise UnsupportedType(
            f"x is {x.dtype}; {name} takes int8 or bfloat16: convert it with astype(np.int8) or "
            "astype(ml_dtypes.bfloat16)"
        )


def _axes(x: Buffer, window: Pair, stride: Pair | None, padding: Padding) -> tuple[Axis, Axis]:
    taps = pair_of("window", window, 1)
    axes = axes_of(x.shape, taps, taps if stride is None else stride, padding, 1)
    for name, axis in zip("yx", axes, strict=True):
        behind = (axis.out - 1) * axis.stride + axis.taps - axis.pad - axis.size
        if max(axis.pad, behind) >= axis.taps:
            raise BadRequest(
                f"windows are {axis.taps} pixels along {name} and reach {max(axis.pad, behind)} out of the image: some "
                f"would see no pixel; make padding at most {axis.taps - 1} there"
            )
    return axes


def _problem(x: Buffer, axes: tuple[Axis, Axis], op: BinaryOp, out: Buffer | None) -> tuple[Pool, Buffer]:
    """The problem, and the array for its result."""
    device, dtype = Device.of(x), element_type(x.dtype)
    assert dtype is not None
    check_operands(device.config, dtype)
    images, _, _, channels = x.shape
    taps = axes[0].taps * axes[1].taps
    if op is BinaryOp.ADD and dtype is ElementType.INT8 and taps > MAX_TAPS:
        raise ShapeMismatch(f"the window has {taps} taps; int32 sums of more than {MAX_TAPS} could wrap: use bfloat16")
    shape = (images, axes[0].out, axes[1].out, channels)
    if out is None:
        out = device.empty(shape, x.dtype)
    elif out.shape != shape or out.dtype != x.dtype:
        raise ShapeMismatch(f"out is {out!r}; the result is {x.dtype} of shape {shape}")
    check_dense("x", x)
    check_dense("out", out)
    if out.layout.overlaps(x.layout):
        raise BadRequest("out shares memory with x, which is still read while results are written: use another")
    (image, row, pixel, _), (out_image, out_row, out_pixel, _) = x.strides, out.strides
    steps = Steps(pixel, row, out_pixel, out_row, image, out_image)
    return Pool(*axes, channels, channels, taps, steps, dtype, batch=images, op=op), out


def _parts(axis: Axis) -> Iterator[tuple[int, Axis, int]]:
    """Outputs that see the same number of pixels: the first one, the axis from what they see on, and the number."""
    seen = [_seen(axis, o) for o in range(axis.out)]
    first = 0
    for o in range(1, axis.out + 1):
        if o == axis.out or seen[o] != seen[first]:
            origin = first * axis.stride - axis.pad
            start = max(origin, 0)
            yield first, replace(axis, size=axis.size - start, out=o - first, pad=start - origin), seen[first]
            first = o


def _seen(axis: Axis, output: int) -> int:
    origin = output * axis.stride - axis.pad
    return min(origin + axis.taps, axis.size) - max(origin, 0)
