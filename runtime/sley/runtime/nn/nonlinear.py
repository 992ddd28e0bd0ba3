"""Activation functions besides GELU and SiLU; with the parameters of ``arithmetic``, and the types and errors as
``functions`` states them.
"""

from __future__ import annotations

from typing import Any

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.nn.elements import between
from sley.runtime.nn.mapping import Operand, in_fp32, mapped
from sley.runtime.tile import language as tile

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def relu(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x, or 0 where it is negative; of any type."""
    return mapped("relu", tile.maximum, x, 0, out=out, stream=stream)


def relu6(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x, at least 0 and at most 6."""
    return hardtanh(x, 0.0, 6.0, out=out, stream=stream)


def hardtanh(
    x: Buffer, low: float = -1.0, high: float = 1.0, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """x, at least ``low`` and at most ``high``."""
    return in_fp32("hardtanh", between, x, low, high, out=out, stream=stream)


def leaky_relu(x: Buffer, slope: float = 0.01, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x, or slope · x where it is negative: 1 ulp, which the slope as fp32 is a part of."""
    return in_fp32("leaky_relu", prelu_tile, x, float(slope), out=out, stream=stream)


def prelu(x: Buffer, slope: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """As ``leaky_relu``, with an array of slopes, broadcast: half a ulp."""
    return in_fp32("prelu", prelu_tile, x, slope, out=out, stream=stream)


def elu(x: Buffer, alpha: float = 1.0, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x, or alpha · (e^x - 1) where it is negative: 2 ulp, and 2^-24 absolute."""
    return in_fp32("elu", elu_tile, x, float(alpha), out=out, stream=stream)


def celu(x: Buffer, alpha: float = 1.0, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x, or alpha · (e^(x / alpha) - 1) where it is negative: 3 ulp, and 2^-24 absolute."""
    return in_fp32("celu", _celu, x, float(alpha), out=out, stream=stream)


def selu(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """``elu`` with the alpha and the scale of self-normalising networks: 2 ulp, and 2^-23 absolute."""
    return in_fp32("selu", _selu, x, out=out, stream=stream)


def tanh(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The hyperbolic tangent: 1 ulp."""
    return in_fp32("tanh", tile.tanh, x, out=out, stream=stream)


def sigmoid(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """1 / (1 + e^-x): 2.75 ulp; 0 from -32 on downwards."""
    return in_fp32("sigmoid", tile.sigmoid, x, out=out, stream=stream)


def log_sigmoid(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """log(sigmoid(x)), as -softplus(-x): 1 ulp, and 2^-22 absolute."""
    return in_fp32("log_sigmoid", _log_sigmoid, x, out=out, stream=stream)


def hardsigmoid(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x / 6 + 1 / 2, at least 0 and at most 1: an absolute error of 2^-24."""
    return in_fp32("hardsigmoid", hardsigmoid_tile, x, out=out, stream=stream)


def hardswish(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x · hardsigmoid(x): 1.5 ulp, and 2^-22 absolute."""
    return in_fp32("hardswish", hardswish_tile, x, out=out, stream=stream)


def softplus(x: Buffer, beta: float = 1.0, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """log(1 + e^(beta · x)) / beta, as max(x, 0) + log(1 + e^-|beta · x|) / beta: 1 ulp,
    and 2^-22 / beta absolute."""
    return in_fp32("softplus", softplus_tile, x, float(beta), out=out, stream=stream)


def softsign(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x / (1 + |x|): 3 ulp."""
    return in_fp32("softsign", _softsign, x, out=out, stream=stream)


def tanhshrink(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x - tanh(x): half a ulp, and 2^-23 absolute."""
    return in_fp32("tanhshrink", _tanhshrink, x, out=out, stream=stream)


def softshrink(x: Buffer, bound: float = 0.5, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x brought nearer to 0 by ``bound``, 0 where it is no further away: half a ulp."""
    return in_fp32("softshrink", _softshrink, x, float(bound), out=out, stream=stream)


def hardshrink(x: Buffer, bound: float = 0.5, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x, or 0 where it is no further from 0 than ``bound``."""
    return in_fp32("hardshrink", _hardshrink, x, float(bound), out=out, stream=stream)


def threshold(
    x: Buffer, bound: float, value: float, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """x where it is above ``bound``, else ``value``."""
    return in_fp32("threshold", _threshold, x, float(bound), float(value), out=out, stream=stream)


def mish(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x · tanh(softplus(x)), as x · n / (n + 2) with n = e^2x + 2 e^x: 3 ulp, and 2^-23 absolute."""
    return in_fp32("mish", _mish, x, out=out, stream=stream)


def swiglu(gate: Buffer, x: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """silu(gate) · x: the middle of a Llama's feed-forward layer: 4 ulp for gates above -32, 0 below."""
    return in_fp32("swiglu", _swiglu, gate, x, out=out, stream=stream)


def geglu(gate: Buffer, x: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """gelu(gate) · x: 4 ulp for gates above -3, and 2^-36 of x below."""
    return in_fp32("geglu", _geglu, gate, x, out=out, stream=stream)


def glu(x: Buffer, gate: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x · sigmoid(gate): 3.5 ulp for gates above -32, 0 below."""
    return in_fp32("glu", _glu, x, gate, out=out, stream=stream)


def prelu_tile(x: Any, slope: Any) -> Any:
    return tile.where(x < 0.0, x * slope, x)


def elu_tile(x: Any, alpha: float) -> Any:
    return tile.where(x < 0.0, (tile.exp(tile.minimum(x, 0.0)) - 1.0) * alpha, x)


def _celu(x: Any, alpha: float) -> Any:
    return elu_tile(x * (1 / alpha), 1.0) * alpha


def _selu(x: Any) -> Any:
    return elu_tile(x, SELU_ALPHA) * SELU_SCALE


def softplus_tile(x: Any, beta: float) -> Any:
    scaled = x * beta
    power = tile.exp(tile.minimum(scaled, -scaled))
    return tile.log(power + 1.0) * (1 / beta) + tile.maximum(x, 0.0)


def _log_sigmoid(x: Any) -> Any:
    return -softplus_tile(-x, 1.0)


def hardsigmoid_tile(x: Any) -> Any:
    return between(x * (1 / 6) + 0.5, 0.0, 1.0)


def hardswish_tile(x: Any) -> Any:
    return hardsigmoid_tile(x) * x


def _softsign(x: Any) -> Any:
    x = between(x, -(2.0**100), 2.0**100)  # whose reciprocals are not subnormal
    return tile.reciprocal(tile.maximum(x, -x) + 1.0) * x


def _tanhshrink(x: Any) -> Any:
    return x - tile.tanh(x)


def _softshrink(x: Any, bound: float) -> Any:
    return tile.maximum(x - bound, 0.0) + tile.minimum(x + bound, 0.0)


def _hardshrink(x: Any, bound: float) -> Any:
    return tile.where(tile.maximum(x, -x) <= bound, 0.0, x)


def _threshold(x: Any, bound: float, value: float) -> Any:
    return tile.where(x <= bound, value, x)


def _mish(x: Any) -> Any:
    most, _ = mish_parts(x)
    return most * x


def mish_parts(x: Any) -> tuple[Any, Any]:
    """t = tanh(softplus(x)) and 1 - t^2, as n / (n + 2) and 4 (n + 1) / (n + 2)^2 with n = e^2x + 2 e^x."""
    power = tile.exp(tile.minimum(x, 20.0))
    most = (power + 2.0) * power
    inverse = tile.reciprocal(most + 2.0)
    return most * inverse, (most + 1.0) * 4.0 * inverse * inverse


def _swiglu(gate: Any, x: Any) -> Any:
    return tile.silu(gate) * x


def _geglu(gate: Any, x: Any) -> Any:
    return tile.gelu(gate) * x


def _glu(x: Any, gate: Any) -> Any:
    return tile.sigmoid(gate) * x
