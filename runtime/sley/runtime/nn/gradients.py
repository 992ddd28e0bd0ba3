"""Gradients of functions of one element: the gradient of the result, times the derivative at x, in fp32.

Parameters of all: ``grad``, of the result's shape; ``x``, what the function was called with, or ``y``, what it gave;
``out``, ``stream`` as everywhere. The result has the type that grad and x have together. Errors are in units in the
last place of grad as float32.
"""

from __future__ import annotations

import math
from typing import Any

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.nn.mapping import in_fp32
from sley.runtime.nn.nonlinear import SELU_ALPHA, SELU_SCALE, mish_parts
from sley.runtime.tile import language as tile

DENSITY = 1 / math.sqrt(2 * math.pi)


def relu_backward(grad: Buffer, x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``relu``, by x or y; 0 at 0; exactly."""
    return in_fp32("relu_backward", _relu, grad, x, out=out, stream=stream)


def hardtanh_backward(
    grad: Buffer,
    x: Buffer,
    low: float = -1.0,
    high: float = 1.0,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """Of ``hardtanh``, with 0 and 6 of ``relu6``; 0 at the bounds; exactly."""
    return in_fp32("hardtanh_backward", _hardtanh, grad, x, float(low), float(high), out=out, stream=stream)


def leaky_relu_backward(
    grad: Buffer, x: Buffer, slope: float = 0.01, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """Of ``leaky_relu``; ``slope`` at 0: 1 ulp."""
    return in_fp32("leaky_relu_backward", _leaky_relu, grad, x, float(slope), out=out, stream=stream)


def elu_backward(
    grad: Buffer, x: Buffer, alpha: float = 1.0, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """Of ``elu``: 3 ulp."""
    return in_fp32("elu_backward", _elu, grad, x, float(alpha), 1.0, out=out, stream=stream)


def selu_backward(grad: Buffer, x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``selu``: 3.5 ulp."""
    return in_fp32("selu_backward", _elu, grad, x, SELU_ALPHA, SELU_SCALE, out=out, stream=stream)


def tanh_backward(grad: Buffer, y: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``tanh``, by its result: grad · (1 - y · y): 2 ulp."""
    return in_fp32("tanh_backward", _tanh, grad, y, out=out, stream=stream)


def sigmoid_backward(grad: Buffer, y: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``sigmoid``, by its result: grad · y · (1 - y): 2 ulp."""
    return in_fp32("sigmoid_backward", _sigmoid, grad, y, out=out, stream=stream)


def log_sigmoid_backward(grad: Buffer, x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``log_sigmoid``: grad · sigmoid(-x): 3 ulp."""
    return in_fp32("log_sigmoid_backward", _log_sigmoid, grad, x, out=out, stream=stream)


def hardsigmoid_backward(grad: Buffer, x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``hardsigmoid``; 0 at -3 and 3: 1 ulp."""
    return in_fp32("hardsigmoid_backward", _hardsigmoid, grad, x, out=out, stream=stream)


def hardswish_backward(grad: Buffer, x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``hardswish``; 0 at -3, grad at 3: 3 ulp."""
    return in_fp32("hardswish_backward", _hardswish, grad, x, out=out, stream=stream)


def gelu_backward(grad: Buffer, x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``gelu``: grad · (Φ(x) + x · φ(x)): 4 ulp."""
    return in_fp32("gelu_backward", _gelu, grad, x, out=out, stream=stream)


def silu_backward(grad: Buffer, x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``silu``: grad · sigmoid(x) · (1 + x · sigmoid(-x)): 4 ulp."""
    return in_fp32("silu_backward", _silu, grad, x, out=out, stream=stream)


def mish_backward(grad: Buffer, x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``mish``: with t = tanh(softplus(x)), grad · (t + x · sigmoid(x) · (1 - t · t)): 6 ulp."""
    return in_fp32("mish_backward", _mish, grad, x, out=out, stream=stream)


def softplus_backward(
    grad: Buffer, x: Buffer, beta: float = 1.0, *, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """Of ``softplus``: grad · sigmoid(beta · x): 3 ulp."""
    return in_fp32("softplus_backward", _softplus, grad, x, float(beta), out=out, stream=stream)


def softsign_backward(grad: Buffer, x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """Of ``softsign``: grad / (1 + |x|)^2: 4 ulp."""
    return in_fp32("softsign_backward", _softsign, grad, x, out=out, stream=stream)


def _relu(grad: Any, x: Any) -> Any:
    return tile.where(x <= 0.0, 0.0, grad)


def _hardtanh(grad: Any, x: Any, low: float, high: float) -> Any:
    return tile.where((x > low) * (x < high), grad, 0.0)


def _leaky_relu(grad: Any, x: Any, slope: float) -> Any:
    return tile.where(x <= 0.0, grad * slope, grad)


def _elu(grad: Any, x: Any, alpha: float, scale: float) -> Any:
    return tile.where(x <= 0.0, tile.exp(tile.minimum(x, 0.0)) * (alpha * scale), scale) * grad


def _tanh(grad: Any, y: Any) -> Any:
    return (1.0 - y * y) * grad


def _sigmoid(grad: Any, y: Any) -> Any:
    return (1.0 - y) * y * grad


def _log_sigmoid(grad: Any, x: Any) -> Any:
    return tile.sigmoid(-x) * grad


def _hardsigmoid(grad: Any, x: Any) -> Any:
    return tile.where((x > -3.0) * (x < 3.0), grad * (1 / 6), 0.0)


def _hardswish(grad: Any, x: Any) -> Any:
    slope = tile.where(x >= 3.0, 1.0, x * (1 / 3) + 0.5)
    return tile.where(x <= -3.0, 0.0, slope) * grad


def _gelu(grad: Any, x: Any) -> Any:
    return (tile.normal_cdf(x) + tile.exp(x * x * -0.5) * DENSITY * x) * grad


def _silu(grad: Any, x: Any) -> Any:
    return (tile.sigmoid(-x) * x + 1.0) * tile.sigmoid(x) * grad


def _mish(grad: Any, x: Any) -> Any:
    inner, left = mish_parts(x)
    return (left * (tile.sigmoid(x) * x) + inner) * grad


def _softplus(grad: Any, x: Any, beta: float) -> Any:
    return tile.sigmoid(x * beta) * grad


def _softsign(grad: Any, x: Any) -> Any:
    inverse = tile.reciprocal(tile.maximum(x, -x) + 1.0)
    return inverse * inverse * grad
