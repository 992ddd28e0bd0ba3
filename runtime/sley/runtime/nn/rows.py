"""Softmax, layer norm and RMS norm: rows of bfloat16 by programs of their own, everything else by tile kernels."""

from __future__ import annotations

import math
from typing import SupportsFloat

from numpy.typing import ArrayLike, DTypeLike

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.kernels.rows.direct import fits
from sley.runtime.kernels.rows.kernel import keeps, row_program, temporary_rows
from sley.runtime.kernels.rows.norms import layer_norm_operator, rms_norm_operator
from sley.runtime.kernels.rows.passes import RowOperator
from sley.runtime.kernels.rows.shape import Rows
from sley.runtime.kernels.rows.softmax import softmax_operator
from sley.runtime.nn.arrays import Call, in_rows, matrix, values_of
from sley.runtime.nn.normalization import layer_norm_over, rms_norm_over
from sley.runtime.nn.softmaxes import softmax_along


def softmax(
    x: Buffer,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """exp(x - maximum) / sum of these, along an axis, on all cores; returns before the work is done.

    Rows of bfloat16 have a program of their own, in the order of ``kernels/rows``; everything else is a tile kernel, in
    the order of ``sums``.

    Computed in fp32 as 2^((x - maximum) * log2(e)) times the reciprocal of the sum; rounded once, at the end.
    -inf has the result 0; a row with NaN or +inf, or of nothing but -inf, has NaN everywhere, as in PyTorch. Against
    float64 the error of a result above 2^-126 is at most 0.51 units in the last place of bf16, of which half a unit is
    the rounding, for operands within [-100, 100]. PyTorch adds the powers in another order; results below
    2^-126 are 0 here.

    Parameters
    ----------
    x: bool, int8, int32, bfloat16 or float32 on the device, one dimension or more, each at least 1. Rows are bfloat16
        along the last axis, contiguous, and the same distance apart.
    dtype: of the result; by default that of x, of integers float32.
    out: array for the result, of the shape of ``x``; a new one if not given. ``x`` itself, but no part of it.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    if isinstance(x, Buffer) and (axis not in (-1, x.ndim - 1) or dtype is not None or not in_rows(x, out)):
        return softmax_along(x, axis, dtype, out=out, stream=stream)
    k = x.shape[-1] if isinstance(x, Buffer) and x.shape else 1
    operator = softmax_operator(isinstance(x, Buffer) and keeps(Device.of(x).config, k))
    return _run(operator, _call(operator, x, out, stream), ())


def layer_norm(
    x: Buffer,
    weight: Buffer | ArrayLike | None = None,
    bias: Buffer | ArrayLike | None = None,
    eps: float = 1e-5,
    *,
    axes: int = 1,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axes, on all cores; returns before it is done.

    Rows of bfloat16, with ``axes`` 1, have a program of their own, which is what is said here of order; everything else
    is a tile kernel, in the order of ``sums``.

    Computed in fp32, rounded once, at the end: the mean is the sum, by the matrix unit in chunks of N elements,
    times 1 / K; the variance is the sum of (x - mean)^2, not of x^2, so a large mean costs nothing; the reciprocal root
    is of (sum + eps * K) * (1 / K). Against float64 the error is at most 0.52 units in the last place of bf16, of the
    larger one of product and bias. PyTorch adds in another order; subnormal numbers are 0 here. Squares that overflow
    fp32 give 0 in place of their quotients, as there.

    Parameters
    ----------
    x: bfloat16, float32, or an integer type on the device, one dimension or more, each at least 1. Rows are bfloat16
        along the last axis, contiguous, and the same distance apart.
    weight, bias: one for each element of these axes, of the device or the host; 1 and 0 if not given.
    eps: 0 or more; eps * K is rounded to fp32.
    axes: how many of the last axes are one.
    out: array for the result, of the shape and type of ``x``; a new one if not given. ``x`` itself, but no part of it.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    eps = _number("layer_norm", eps)
    if isinstance(x, Buffer) and (axes != 1 or not in_rows(x, out, weight, bias)):
        return layer_norm_over(x, weight, bias, eps, axes, out=out, stream=stream)
    k = x.shape[-1] if isinstance(x, Buffer) and x.shape else 1
    operator = layer_norm_operator(max(k, 1), eps, weight is not None, bias is not None)
    return _run(operator, _call(operator, x, out, stream, weight, bias), (("weight", weight), ("bias", bias)))


def rms_norm(
    x: Buffer,
    weight: Buffer | ArrayLike | None = None,
    eps: float = 1e-6,
    *,
    axes: int = 1,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """x / sqrt(mean of x^2 + eps) * weight over the last axes, on all cores; returns before the work is done.

    Rows of bfloat16, with ``axes`` 1, have a program of their own, which is what is said here of order; everything else
    is a tile kernel, in the order of ``sums``.

    Computed in fp32, rounded once, at the end; the reciprocal root is of (sum of x^2 + eps * K) * (1 / K).
    Against float64 the error is at most 0.52 units in the last place of bf16. PyTorch adds in another order, and rounds
    to bf16 before it multiplies by a bf16 weight in some models; subnormal numbers are 0 here.

    Parameters
    ----------
    x: bfloat16, float32, or an integer type on the device, one dimension or more, each at least 1. Rows are bfloat16
        along the last axis, contiguous, and the same distance apart.
    weight: one for each element of these axes, of the device or the host; 1 if not given.
    eps: 0 or more; eps * K is rounded to fp32.
    axes: how many of the last axes are one.
    out: array for the result, of the shape and type of ``x``; a new one if not given. ``x`` itself, but no part of it.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    eps = _number("rms_norm", eps)
    if isinstance(x, Buffer) and (axes != 1 or not in_rows(x, out, weight)):
        return rms_norm_over(x, weight, eps, axes, out=out, stream=stream)
    k = x.shape[-1] if isinstance(x, Buffer) and x.shape else 1
    direct = isinstance(x, Buffer) and fits(Device.of(x).config, k, weight is not None)
    operator = rms_norm_operator(max(k, 1), eps, weight is not None, direct)
    return _run(operator, _call(operator, x, out, stream, weight), (("weight", weight),))


def _call(
    operator: RowOperator, x: Buffer, out: Buffer | None, stream: Stream | None, *values: Buffer | ArrayLike | None
) -> Call:
    chains = [chain for p in operator.passes for chain in (p.chain, p.after) if chain]
    return Call.of(operator.name, chains, x, out, stream, values)


def _number(operator: str, eps: float) -> float:
    if not isinstance(eps, SupportsFloat) or not 0 <= float(eps) < math.inf:
        raise BadRequest(f"eps of {operator} is {eps!r}; it must be a number of 0 or more")
    return float(eps)


def _run(operator: RowOperator, call: Call, values: tuple[tuple[str, Buffer | ArrayLike | None], ...]) -> Buffer:
    device = call.device
    m, k, pitch = matrix(operator.name, "x", call.x)
    _, _, out_pitch = matrix(operator.name, "out", call.out)
    given = [values_of(device, operator.name, name, value, k) for name, value in values if value is not None]
    blocks = min(device.config.cores, -(-m // device.config.array))
    shape = Rows(m, k, pitch, out_pitch, blocks)
    temporary = device.empty((temporary_rows(device.config, operator, shape), device.config.array), BF16)
    program = row_program(device.config, operator, shape)
    call.stream.launch(program, [call.x, call.out, temporary, *given], (blocks,))
    return call.out
