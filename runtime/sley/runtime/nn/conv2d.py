"""Convolution of images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from sley.abi.types import SUM_TYPES, ElementType
from sley.driver import BadRequest
from sley.runtime.device.arguments import Argument
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.device.types import element_type, numpy_type
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.kernels.conv.launch import launch
from sley.runtime.kernels.conv.mapping import parts_of
from sley.runtime.kernels.conv.problem import Conv, Steps
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm.limits import (
    check_depth,
    check_operands,
    check_result,
    check_zero_point,
    unknown_result,
)
from sley.runtime.nn.columns import row_of, scale_of
from sley.runtime.nn.images import Padding, Pair, axes_of, channels_of, check_dense
from sley.runtime.nn.mapping import FP32
from sley.runtime.nn.parts import in_parts
from sley.runtime.nn.weights import ConvWeights, host, operand_type


def conv2d(
    x: Buffer,
    w: ConvWeights | Buffer | ArrayLike,
    *,
    stride: Pair = 1,
    padding: Padding = 0,
    padding_value: int = 0,
    dilation: Pair = 1,
    groups: int = 1,
    bias: Buffer | ArrayLike | None = None,
    scale: float | Buffer | ArrayLike | None = None,
    relu: bool = False,
    residual: Buffer | None = None,
    residual_scale: float = 1.0,
    zero_point: float = 0,
    dtype: DTypeLike | None = None,
    precision: str = "highest",
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """Convolution of images [images, y, x, channels], int8, bf16 or float32, on all cores; returns before it is done.

    int8 is summed exactly in int32, bf16 in fp32: channel blocks of N, the array's columns; in each the taps, row by
    row; of each tap the channels of the block; rounded after every addition. float32 is cut into parts of bf16, as by
    ``matmul``: the channels of a group are there once for each product of parts. Pixels outside of the image are
    ``padding_value``. Then every sum gets the ``bias`` of its output channel, is multiplied by ``scale`` in fp32, is
    clipped below zero if ``relu``, and converted to the type of the result; each step only if asked for, each rounded
    half to even.

    Parameters
    ----------
    x: images, channels last; a view if the channels of a pixel are contiguous, of float32 any view.
    w: [taps y, taps x, channels / groups, outputs], of the type of ``x``. ``nn.ConvWeights``, int8 or bf16, are packed
        once; an array is packed in every call, and one of the device is read back for that, which waits for all work
        so far.
    stride, dilation: one number, or those along y and x; 1 or more.
    padding: pixels around the image: one number, those along y and x, or ((top, bottom), (left, right)).
    padding_value: what these are: 0, or, of int8 images, a number from -128 to 127, such as a zero point.
    groups: output group g sees the channels of input group g alone; channels and outputs are multiples of it.
    bias: [outputs]; int32 for int8, else float32. int8 needs a ``scale`` then, and no sum may wrap, as in
        ``blas.gemm``.
    scale: factor of all sums, or one for each output channel, [outputs] of float32.
    relu: clip below zero; int8 operands need a ``scale`` then.
    residual: int8 like the result, which is int8: times ``residual_scale`` in fp32 it is added last, before the
        result is rounded. On chips with chains. It lies as ``out`` does, and has no byte in common with it.
    zero_point: of a result of int8 or uint8, one of its numbers; it is added to what is rounded, and then saturated.
        On chips with chains and round.
    dtype: of the result: int32 (int8 operands, without scale), float32, bfloat16 (chips with bf16), int8, uint8 (chips
        with chains). Default: int32, with scale int8, for other operands float32.
    precision: of float32 operands, as in ``matmul``; others have none.
    out: array for the result, [images, y, x, outputs] of its type; a new one if not given. A view if the channels of a
        pixel are contiguous; it has no byte in common with ``x``.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    if not isinstance(x, Buffer):
        raise UnsupportedType(f"x is {type(x).__name__}; conv2d takes images on the device: device.array(values)")
    if out is not None and not isinstance(out, Buffer):
        raise UnsupportedType(
            f"out is {type(out).__name__}; conv2d writes to arrays of the device: device.empty makes one"
        )
    if stream is not None and not isinstance(stream, Stream):
        raise UnsupportedType(f"stream is {stream!r}; give one of device.streams")
    device = Device.of(x)
    for given in (x, w, bias, scale, residual, out, stream):
        if isinstance(given, Buffer | Stream):
            device.check_owner(given)
    if x.dtype == FP32 and not isinstance(w, ConvWeights):
        x, w = in_parts(x, host(w), groups, precision, stream)
    weights = _weights(device, w)
    operands = operand_type("x", x.dtype)
    if operands is not weights.dtype:
        raise UnsupportedType(
            f"x is {x.dtype} and w {numpy_type(weights.dtype)}; both operands of conv2d have one type: use astype"
        )
    check_operands(device.config, operands)
    if padding_value and (operands is not ElementType.INT8 or not -128 <= padding_value < 128):
        raise BadRequest(f"padding_value is {padding_value}; images of int8 take -128 to 127, those of floats 0 alone")
    axes = axes_of(x.shape, weights.shape[:2], stride, padding, dilation)
    channels, outputs = channels_of(x.shape, weights.shape, groups)
    products = weights.shape[0] * weights.shape[1] * weights.shape[2]
    check_depth(operands, products)
    result = _result(operands, scale is not None, dtype if dtype is not None or out is None else out.dtype)
    check_result(device.config, operands, result, scale is not None)
    if operands is ElementType.INT8 and scale is None and (bias is not None or relu):
        raise BadRequest("bias and relu need a scale: the int32 result has no epilogue; give scale=1.0 for int8")
    if residual is not None and (operands is not ElementType.INT8 or result is not ElementType.INT8 or relu):
        raise BadRequest("a residual is for int8 operands and results, and no relu; add it by nn.add")
    has_zero = check_zero_point(device.config, result, scale is not None, zero_point)
    if has_zero and residual is not None:
        raise BadRequest("zero_point beside a residual; it is part of the bias then: add it divided by the scale")
    shape, kind = (x.shape[0], axes[0].out, axes[1].out, outputs), numpy_type(result)
    if out is None:
        out = device.empty(shape, kind)
    elif out.shape != shape or out.dtype != kind:
        raise ShapeMismatch(f"out is {out!r}; the result is {kind} of shape {shape}")
    check_dense("x", x)
    check_dense("out", out)
    values = _Values.of(device, outputs, operands, bias, scale, result)
    if residual is not None:
        _check_residual(device, residual, out)
    for name, operand in (("x", x), ("bias", values.bias), ("scale", values.scale), ("residual", residual)):
        if isinstance(operand, Buffer) and out.layout.overlaps(operand.layout):
            raise BadRequest(
                f"out shares memory with {name}, which is still read while results are written: use another"
            )
    rows = isinstance(values.scale, Buffer)
    has_bias, has_scale, joined = values.bias is not None, values.scale is not None, residual is not None
    epilogue = Epilogue(result, has_bias, has_scale, relu, scale_rows=rows, residual=joined, zero_point=has_zero)
    (image, row, pixel, _), (out_image, out_row, out_pixel, _) = x.strides, out.strides
    steps = Steps(pixel, row, out_pixel, out_row, image, out_image)
    problem = Conv(*axes, channels, outputs, products, steps, operands, epilogue, x.shape[0], padding_value)
    run = stream or device.stream
    for part in parts_of(device.config, problem, groups):
        first, column, channel = part.x_at
        to_first, to_column, output = part.out_at
        source, target = x[first:, :, column:, channel:], out[to_first:, :, to_column:, output:]
        more = values.behind(output)
        if residual is not None:
            more += [residual[to_first:, :, to_column:, output:], float(residual_scale)]
        if has_zero:
            more.append(float(zero_point))
        launch(run, part.problem, source, weights.packed(groups, part.form), target, *more)
    return out


@dataclass(frozen=True)
class _Values:
    """Bias, and scale as a number or one for each channel; ``None`` for what there is not."""

    bias: Buffer | None
    scale: Buffer | float | None

    @classmethod
    def of(
        cls,
        device: Device,
        outputs: int,
        operands: ElementType,
        bias: Buffer | ArrayLike | None,
        scale: float | Buffer | ArrayLike | None,
        result: ElementType,
    ) -> _Values:
        kind = numpy_type(SUM_TYPES[operands])
        row = None if bias is None else row_of(device, "bias", bias, kind, outputs, "outputs")
        factor = scale_of(device, scale, outputs, "outputs")
        if factor is None and operands is ElementType.INT8 and result is not ElementType.INT32:
            factor = 1.0  # a sum that nobody scales stays what it is; the SCALE row also makes fp32 of int32
        return cls(row, factor)

    def behind(self, output: int) -> list[Argument]:
        """Arguments of a launch whose first output channel is this one."""
        found: list[Argument] = [] if self.bias is None else [self.bias[output:]]
        if self.scale is not None:
            found.append(self.scale[output:] if isinstance(self.scale, Buffer) else self.scale)
        return found


def _check_residual(device: Device, residual: Buffer, out: Buffer) -> None:
    if not device.config.vector_chains:
        raise BadRequest(f"a residual takes chains, and the chip {device.config.name} has none; add it by nn.add")
    steps = zip(out.shape, residual.strides, out.strides, strict=False)
    if (residual.shape, residual.dtype) != (out.shape, out.dtype) or any(n > 1 and a != b for n, a, b in steps):
        raise ShapeMismatch(f"residual is {residual!r}, and the result {out!r}; they have one shape, type and strides")


def _weights(device: Device, w: ConvWeights | Buffer | ArrayLike) -> ConvWeights:
    if isinstance(w, ConvWeights):
        if w.device is not device:
            raise BadRequest(f"w lives on another device than {device!r}; make ConvWeights on this one")
        return w
    return ConvWeights(device, host(w))


def _result(operands: ElementType, scaled: bool, dtype: DTypeLike | None) -> ElementType:
    if dtype is None:
        if operands is ElementType.BF16:
            return ElementType.FP32
        return ElementType.INT8 if scaled else ElementType.INT32
    result = element_type(dtype)
    if result is None:
        raise unknown_result(np.dtype(dtype).name)
    return result
