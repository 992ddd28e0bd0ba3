"""int8 from floats and back, with scales for a whole array or for each channel."""

from __future__ import annotations

from typing import Any

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.nn import sums
from sley.runtime.nn.elements import times
from sley.runtime.nn.mapping import FP32, INT8, Operand, mapped
from sley.runtime.tile import language as tile

ROUNDING = 1.5 * 2.0**23
"""Sums of fp32 with it are integers."""


def quantize(
    x: Buffer, scale: Operand, zero_point: Operand = 0.0, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """x · (1 / scale), rounded half to even, plus the zero point, saturated to int8.

    Parameters
    ----------
    x: bfloat16 or float32.
    scale: a number above 0, or an array of float32, broadcast: one for each channel. zero_point: integers, as scale.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    zero = as_number(zero_point)
    return mapped(
        "quantize",
        quantized if isinstance(zero, float) and not zero else _quantized_exactly,
        x,
        checked_scale(scale),
        zero,
        dtype=INT8,
        computed=FP32,
        out=out,
        stream=stream,
    )


def dequantize(
    x: Buffer,
    scale: Operand,
    zero_point: Operand = 0.0,
    *,
    dtype: Any = FP32,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """(x - zero point) · scale as float32 or bfloat16; of int8, or of sums in int32; parameters as those of
    ``quantize``.
    """
    kind = FP32 if dtype is FP32 else dtype
    return mapped(
        "dequantize",
        dequantized,
        x,
        as_number(scale),
        as_number(zero_point),
        dtype=kind,
        computed=FP32,
        out=out,
        stream=stream,
    )


def requantize(
    x: Buffer,
    scale: Operand,
    *,
    relu: bool = False,
    zero_point: int = 0,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """Sums in int32 times scale, clipped below zero if ``relu``, rounded half to even, plus the zero point, saturated
    to int8."""
    function: Any = _requantized_relu if relu else times
    operands: list[Any] = [x, as_number(scale)]
    if zero_point:
        function, operands = _requantized_relu_at if relu else _requantized_at, [*operands, float(zero_point)]
    return mapped("requantize", function, *operands, dtype=INT8, computed=FP32, out=out, stream=stream)


def absmax_scale(x: Buffer, axis: sums.Axes = None, *, stream: Stream | None = None) -> Buffer:
    """The largest absolute value along axes, by 127, at least 2^-100: the scale of a dynamic quantisation, float32 with
    one element along these axes.
    """
    largest = sums.amax(x, axis, True, stream=stream)
    smallest = sums.amin(x, axis, True, stream=stream)
    return mapped("absmax_scale", _scale, largest, smallest, dtype=FP32, computed=FP32, stream=stream)


def checked_scale(scale: Operand) -> Operand:
    """A scale as functions of tiles take it. Raises ``BadRequest`` for a number that is not above 0."""
    if isinstance(scale, int | float) and not scale > 0:
        raise BadRequest(f"scale is {scale}; it is above 0")
    return as_number(scale)


def as_number(value: Operand) -> Operand:
    """A float in place of an integer, which would be one of int32."""
    return float(value) if isinstance(value, int) else value


def quantized(x: Any, scale: Any, zero_point: Any) -> Any:
    """What is rounded and saturated to int8."""
    inverse = 1 / scale if isinstance(scale, float) else tile.reciprocal(scale)
    return x * inverse + zero_point


def dequantized(x: Any, scale: Any, zero_point: Any) -> Any:
    """What an int8 stands for."""
    return (x - zero_point) * scale


def rounded_at(x: Any, zero_point: Any) -> Any:
    """x rounded half to even, plus a zero point, for |x| up to 2^22; above it saturates as x does."""
    return (x + ROUNDING) + (zero_point - ROUNDING)


def _quantized_exactly(x: Any, scale: Any, zero_point: Any) -> Any:
    return rounded_at(quantized(x, scale, 0.0), zero_point)


def _requantized_at(x: Any, scale: Any, zero_point: Any) -> Any:
    return rounded_at(x * scale, zero_point)


def _requantized_relu_at(x: Any, scale: Any, zero_point: Any) -> Any:
    return rounded_at(tile.maximum(x * scale, 0.0), zero_point)


def _requantized_relu(x: Any, scale: Any) -> Any:
    return tile.maximum(x * scale, 0.0)


def _scale(largest: Any, smallest: Any) -> Any:
    return tile.maximum(tile.maximum(largest, -smallest) * (1 / 127), 2.0**-100)
