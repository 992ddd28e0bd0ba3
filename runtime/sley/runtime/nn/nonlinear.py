"""Activation functions besides GELU and SiLU; with the parameters of ``arithmetic`` and the types of
``functions``.
"""

from __future__ import annotations

from typing import Any

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
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
    return in_fp32("hardtanh", _between, x, low, high, out=out, stream=stream)


def leaky_relu(x: Buffer, slope: float = 0.01, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x, or slope · x where it is negative."""
    return in_fp32("leaky_relu", prelu_tile, x, float(slope), out=out, stream=stream)


def prelu(x: Buffer, slope: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """As ``leaky_relu``, with an array of slopes, broadcast."""
    return in_fp32("prelu", prelu_tile, x, slope, out=out, stream=stream)


def elu(x: Buffer, alpha: float = 1.0, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x, or alpha · (e^x - 1) where it is negative."""
    return in_fp32("elu", _elu, x, float(alpha), out=out, stream=stream)


def celu(x: Buffer, alpha: float = 1.0, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x, or alpha · (e^(x / alpha) - 1) where it is negative."""
    return in_fp32("celu", _celu, x, float(alpha), out=out, stream=stream)


def selu(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """``elu`` with the alpha and the scale of self-normalising networks."""
    return in_fp32("selu", _selu, x, out=out, stream=stream)


def tanh(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The hyperbolic tangent."""
    return in_fp32("tanh", tile.tanh, x, out=out, stream=stream)


def sigmoid(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """1 / (1 + e^-x)."""
    return in_fp32("sigmoid", tile.sigmoid, x, out=out, stream=stream)


def log_sigmoid(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """log(sigmoid(x)), as -softplus(-x)."""
    return in_fp32("log_sigmoid", _log_sigmoid, x, out=out, stream=stream)


def hardsigmoid(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x / 6 + 1 / 2, at least 0 and at most 1."""
    return in_fp32("hardsigmoid", hardsigmoid_tile, x, out=out, stream=stream)


def hardswish(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x · hardsigmoid(x)."""
    return in_fp32("hardswish", _hardswish, x, out=out, stream=stream)


def softplus(x: Buffer, beta: float = 1.0, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """log(1 + e^(beta · x)) / beta, as max(x, 0) + log(1 + e^-|beta · x|) / beta: an absolute error of 2^-22 / beta."""
    return in_fp32("softplus", softplus_tile, x, float(beta), out=out, stream=stream)


def softsign(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x / (1 + |x|)."""
    return in_fp32("softsign", _softsign, x, out=out, stream=stream)


def tanhshrink(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x - tanh(x)."""
    return in_fp32("tanhshrink", _tanhshrink, x, out=out, stream=stream)


def softshrink(x: Buffer, bound: float = 0.5, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x brought nearer to 0 by ``bound``, 0 where it is no further away."""
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
    """x · tanh(softplus(x))."""
    return in_fp32("mish", _mish, x, out=out, stream=stream)


def swiglu(gate: Buffer, x: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """silu(gate) · x: the middle of a Llama's feed-forward layer."""
    return in_fp32("swiglu", _swiglu, gate, x, out=out, stream=stream)


def geglu(gate: Buffer, x: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """gelu(gate) · x."""
    return in_fp32("geglu", _geglu, gate, x, out=out, stream=stream)


def glu(x: Buffer, gate: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x · sigmoid(gate)."""
    return in_fp32("glu", _glu, x, gate, out=out, stream=stream)


def _between(x: Any, low: float, high: float) -> Any:
    return tile.minimum(tile.maximum(x, low), high)


def prelu_tile(x: Any, slope: Any) -> Any:
    return tile.where(x < 0.0, x * slope, x)


def _elu(x: Any, alpha: float) -> Any:
    return tile.where(x < 0.0, (tile.exp(tile.minimum(x, 0.0)) - 1.0) * alpha, x)


def _celu(x: Any, alpha: float) -> Any:
    return _elu(x * (1 / alpha), 1.0) * alpha


def _selu(x: Any) -> Any:
    return _elu(x, SELU_ALPHA) * SELU_SCALE


def softplus_tile(x: Any, beta: float) -> Any:
    scaled = x * beta
    power = tile.exp(tile.minimum(scaled, -scaled))
    return tile.log(power + 1.0) * (1 / beta) + tile.maximum(x, 0.0)


def _log_sigmoid(x: Any) -> Any:
    return -softplus_tile(-x, 1.0)


def hardsigmoid_tile(x: Any) -> Any:
    return _between(x * (1 / 6) + 0.5, 0.0, 1.0)


def _hardswish(x: Any) -> Any:
    return hardsigmoid_tile(x) * x


def _softsign(x: Any) -> Any:
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
    return tile.tanh(softplus_tile(x, 1.0)) * x


def _swiglu(gate: Any, x: Any) -> Any:
    return tile.silu(gate) * x


def _geglu(gate: Any, x: Any) -> Any:
    return tile.gelu(gate) * x


def _glu(x: Any, gate: Any) -> Any:
    return tile.sigmoid(gate) * x
