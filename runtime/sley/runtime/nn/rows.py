"""Operators that reduce along the last axis: softmax, layer norm, RMS norm."""

from __future__ import annotations

import math
from typing import SupportsFloat

from numpy.typing import ArrayLike

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
from sley.runtime.nn.arrays import Call, matrix, values_of


def softmax(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """exp(x - maximum) / sum of these, over the last axis of bf16, on all cores; returns before the work is done."""
    k = x.shape[-1] if isinstance(x, Buffer) and x.shape else 1
    operator = softmax_operator(isinstance(x, Buffer) and keeps(Device.of(x).config, k))
    return _run(operator, _call(operator, x, out, stream), ())


def layer_norm(
    x: Buffer,
    weight: Buffer | ArrayLike | None = None,
    bias: Buffer | ArrayLike | None = None,
    eps: float = 1e-5,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis of bf16, on all cores."""
    eps = _number("layer_norm", eps)
    k = x.shape[-1] if isinstance(x, Buffer) and x.shape else 1
    operator = layer_norm_operator(max(k, 1), eps, weight is not None, bias is not None)
    return _run(operator, _call(operator, x, out, stream, weight, bias), (("weight", weight), ("bias", bias)))


def rms_norm(
    x: Buffer,
    weight: Buffer | ArrayLike | None = None,
    eps: float = 1e-6,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """x / sqrt(mean of x^2 + eps) * weight over the last axis of bf16, on all cores."""
    eps = _number("rms_norm", eps)
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
