"""Operators on single elements: GELU, SiLU."""

from __future__ import annotations

import math
from typing import Any

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.kernels.rows.activations import GELU, GELU_TANH, SILU, Activation
from sley.runtime.kernels.rows.elements import element_program
from sley.runtime.nn.arrays import Call
from sley.runtime.nn.mapping import in_fp32
from sley.runtime.tile import language as tile


def gelu(x: Buffer, approximate: str = "none", *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x * Phi(x), Phi the normal distribution function, on all cores; returns before the work is done.

    Computed in fp32, rounded to bf16 once, at the end. Against float64 the error of a result is at most 0.51 units in
    the last place of bf16, for x below -4 plus |x| * 2^-37. -inf has the result NaN, as in PyTorch; results below
    2^-126 are 0.

    Parameters
    ----------
    x: on the device, of any type and strides; bfloat16 whose elements are contiguous is fastest.
    approximate: "none", or "tanh" for x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2, which is computed as
        x * sigmoid(x * (c * 0.044715 * x^2 + c)) with c = 2 * sqrt(2 / pi), in two passes; its error, against float64
        of the same formula, is at most 0.51 units, for x below -5 plus |x| * 2^-46.
    out: array for the result, bfloat16 of the shape of ``x``; a new one if not given. ``x`` itself, but no part of it.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    forms = {"none": GELU, "tanh": GELU_TANH}
    if approximate not in forms:
        raise BadRequest(f"approximate is {approximate!r}; gelu has {' and '.join(map(repr, forms))}")
    if not _in_one_program(x):
        return in_fp32("gelu", GELU_TILES[approximate], x, out=out, stream=stream)
    return _run(forms[approximate], x, out, stream)


def silu(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x * sigmoid(x), on all cores; returns before the work is done.

    Computed in fp32, rounded to bf16 once, at the end. Against float64 the error of a result is at most 0.51 units in
    the last place of bf16, for x below -31 plus |x| * 2^-46. -inf has the result NaN, as in PyTorch;
    results below 2^-126 are 0.

    Parameters
    ----------
    x: on the device, of any type and strides; bfloat16 whose elements are contiguous is fastest.
    out: array for the result, bfloat16 of the shape of ``x``; a new one if not given. ``x`` itself, but no part of it.
    stream: where to run; the device's default stream if not given.

    Raises ``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
    """
    if not _in_one_program(x):
        return in_fp32("silu", tile.silu, x, out=out, stream=stream)
    return _run(SILU, x, out, stream)


def _in_one_program(x: Buffer) -> bool:
    """Whether a program of its own does it: bfloat16 side by side. Others are element-wise operators by tiles, with the
    same bits for bfloat16."""
    return not isinstance(x, Buffer) or (x.dtype == BF16 and x.contiguous)


def _run(activation: Activation, x: Buffer, out: Buffer | None, stream: Stream | None) -> Buffer:
    call = Call.of(activation.name, activation.chains, x, out, stream)
    device = call.device
    blocks = min(device.config.cores, -(-x.nbytes // device.config.row_bytes))
    program = element_program(device.config, activation, x.nbytes, blocks)
    call.stream.launch(program, [call.x, call.out], (blocks,))
    return call.out


def _gelu_tanh(x: Any) -> Any:
    factor = 2 * math.sqrt(2 / math.pi)
    return tile.sigmoid((x * x * (factor * 0.044715) + factor) * x) * x


GELU_TILES = {"none": tile.gelu, "tanh": _gelu_tanh}
