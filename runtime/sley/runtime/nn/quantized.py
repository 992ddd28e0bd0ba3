"""Operators of int8 with scales: dequantised, computed in fp32 and quantised in one kernel.

An int8 q stands for (q - zero point) · scale. Results are what ``quantize`` makes of the operator's real result, so an
error of it counts only where it moves a rounding. Products and convolutions of int8 take scales themselves: ``linear``,
``matmul`` and convolutions the ``scale`` of their sums, one for each output channel, ``avg_pool2d`` that of its means;
``max_pool2d``, ``relu`` and operators that move elements keep the scale of what they are given.

Parameters of all
-----------------
x, y: int8. scale, x_scale, y_scale, out_scale: above 0: a number, or an array of float32, broadcast: one for each
channel. zero points: numbers or arrays, as scales. ``out``, ``stream`` as everywhere. Results are int8. Raises
``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import UnsupportedType
from sley.runtime.nn.elements import between, first
from sley.runtime.nn.joint_axes import run_joint
from sley.runtime.nn.mapping import FP32, INT8, Operand, mapped
from sley.runtime.nn.nonlinear import elu_tile, hardsigmoid_tile, hardswish_tile, prelu_tile, softplus_tile
from sley.runtime.nn.normalization import last_axes
from sley.runtime.nn.quantization import as_number, checked_scale, dequantized, quantized
from sley.runtime.nn.reducing import Reducing, Statistic, run_reducing
from sley.runtime.nn.shapes import joined_result
from sley.runtime.tile import language as tile


def quantized_add(
    x: Buffer,
    y: Buffer,
    x_scale: Operand,
    y_scale: Operand,
    out_scale: Operand,
    *,
    x_zero_point: Operand = 0.0,
    y_zero_point: Operand = 0.0,
    out_zero_point: Operand = 0.0,
    relu: bool = False,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """The sum of two, clipped below zero if ``relu``; shapes are broadcast."""
    numbers = [(x_scale, x_zero_point), (y_scale, y_zero_point), (out_scale, out_zero_point)]
    return _elements("quantized_add", _add_relu if relu else _add, [x, y], numbers, out, stream)


def quantized_mul(
    x: Buffer,
    y: Buffer,
    x_scale: Operand,
    y_scale: Operand,
    out_scale: Operand,
    *,
    x_zero_point: Operand = 0.0,
    y_zero_point: Operand = 0.0,
    out_zero_point: Operand = 0.0,
    relu: bool = False,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """The product of two, clipped below zero if ``relu``; shapes are broadcast."""
    numbers = [(x_scale, x_zero_point), (y_scale, y_zero_point), (out_scale, out_zero_point)]
    return _elements("quantized_mul", _mul_relu if relu else _mul, [x, y], numbers, out, stream)


def quantized_activation(
    x: Buffer,
    kind: str,
    scale: Operand,
    out_scale: Operand,
    *,
    zero_point: Operand = 0.0,
    out_zero_point: Operand = 0.0,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """A function of each element, by the name of its operator: elu, gelu, hardsigmoid, hardswish, leaky_relu, relu,
    relu6, sigmoid, silu, softplus, tanh; with the parameters that these have by default."""
    if kind not in ACTIVATIONS:
        raise BadRequest(f"kind is {kind!r}; it is one of {', '.join(ACTIVATIONS)}")
    numbers = [(scale, zero_point), (out_scale, out_zero_point)]
    return _elements("quantized_activation", ACTIVATIONS[kind], [x], numbers, out, stream)


def quantized_concat(
    arrays: Sequence[Buffer],
    scales: Sequence[float],
    out_scale: float,
    axis: int = 0,
    *,
    zero_points: Sequence[float] | None = None,
    out_zero_point: float = 0.0,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """Arrays one behind the other along an axis, each from its scale to that of the result: a launch for each."""
    points = [0.0] * len(arrays) if zero_points is None else list(zero_points)
    if not len(arrays) == len(scales) == len(points):
        raise BadRequest(f"{len(arrays)} arrays, {len(scales)} scales and {len(points)} zero points; each has its own")
    result, places = joined_result("quantized_concat", arrays, axis, out)
    for array, scale, point, place in zip(arrays, scales, points, places, strict=True):
        numbers = [(scale, point), (out_scale, out_zero_point)]
        _elements("quantized_concat", _same, [array], numbers, result[place], stream)
    return result


def quantized_softmax(
    x: Buffer,
    scale: float,
    out_scale: float = 1 / 256,
    axis: int = -1,
    *,
    out_zero_point: float = -128.0,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """Softmax along an axis, in the order of ``sums``. Results are 0 to 1, for which the default scale and zero point
    are. A zero point of x changes nothing."""
    numbers = (_number("scale", scale), _number("out_scale", out_scale), float(out_zero_point))
    _check_types("quantized_softmax", [x])
    (result,) = run_reducing(_SOFTMAX, [x], [axis], [INT8], [out], numbers=numbers, stream=stream)
    return result


def quantized_layer_norm(
    x: Buffer,
    scale: float,
    out_scale: float,
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
    *,
    axes: int = 1,
    out_zero_point: float = 0.0,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """Layer norm over the last ``axes`` axes, in the order of ``sums``; weight and bias as those of ``layer_norm``. A
    zero point of x changes nothing."""
    over = last_axes(x, axes, "quantized_layer_norm")
    _check_types("quantized_layer_norm", [x])
    factor = _number("scale", scale)
    share = 1 / math.prod(x.shape[axis] for axis in over)
    # (x - mean) · scale over its root is x - mean over a root that is smaller by the scale.
    numbers = (share, eps / (factor * factor), _number("out_scale", out_scale), float(out_zero_point))
    operands = [x, 1.0 if weight is None else weight, 0.0 if bias is None else bias]
    return run_joint(_LAYER_NORM, operands, over, INT8, out, numbers=numbers, stream=stream)


Numbers = Sequence[tuple[Operand, Operand]]
"""Scales and zero points, those of the result last."""


def _elements(
    operator: str,
    function: Callable[..., Any],
    arrays: Sequence[Buffer],
    numbers: Numbers,
    out: Buffer | None,
    stream: Stream | None,
) -> Buffer:
    _check_types(operator, arrays)
    given = [value for scale, point in numbers for value in (checked_scale(scale), as_number(point))]
    return mapped(operator, function, *arrays, *given, dtype=INT8, computed=FP32, out=out, stream=stream)


def _check_types(operator: str, arrays: Sequence[Buffer]) -> None:
    for array in arrays:
        if not isinstance(array, Buffer) or array.dtype != INT8:
            kind = array.dtype if isinstance(array, Buffer) else type(array).__name__
            raise UnsupportedType(f"an operand of {operator} is {kind}; it takes int8 of the device: use nn.quantize")


def _number(name: str, scale: float) -> float:
    if not isinstance(scale, int | float) or not 0 < scale < math.inf:
        raise BadRequest(f"{name} is {scale!r}; it is one number above 0")
    return float(scale)


@dataclass(frozen=True)
class _Real:
    """A function of real numbers, of what one operand stands for."""

    function: Callable[..., Any]
    numbers: tuple[float, ...] = ()

    def __call__(self, x: Any, scale: Any, point: Any, to: Any, at: Any) -> Any:
        return quantized(self.function(dequantized(x, scale, point), *self.numbers), to, at)


def _same(x: Any, scale: Any, point: Any, to: Any, at: Any) -> Any:
    return quantized(dequantized(x, scale, point), to, at)


def _add(x: Any, y: Any, a: Any, p: Any, b: Any, q: Any, to: Any, at: Any) -> Any:
    return quantized(dequantized(x, a, p) + dequantized(y, b, q), to, at)


def _add_relu(x: Any, y: Any, a: Any, p: Any, b: Any, q: Any, to: Any, at: Any) -> Any:
    return quantized(tile.maximum(dequantized(x, a, p) + dequantized(y, b, q), 0.0), to, at)


def _mul(x: Any, y: Any, a: Any, p: Any, b: Any, q: Any, to: Any, at: Any) -> Any:
    return quantized(dequantized(x, a, p) * dequantized(y, b, q), to, at)


def _mul_relu(x: Any, y: Any, a: Any, p: Any, b: Any, q: Any, to: Any, at: Any) -> Any:
    return quantized(tile.maximum(dequantized(x, a, p) * dequantized(y, b, q), 0.0), to, at)


def _power(x: Any, largest: Any, scale: float, *rest: Any) -> Any:
    return tile.exp((x - largest) * scale)


def _inverse(total: Any, *rest: Any) -> Any:
    return tile.reciprocal(total)


def _share(x: Any, largest: Any, inverse: Any, scale: float, to: float, at: float) -> Any:
    return quantized(tile.exp((x - largest) * scale) * inverse, to, at)


def _mean(total: Any, *rest: Any) -> Any:
    return total * rest[-4]


def _distance(x: Any, weight: Any, bias: Any, mean: Any, *rest: Any) -> Any:
    return (x - mean) * (x - mean)


def _rstd(total: Any, *rest: Any) -> Any:
    return tile.rsqrt(total * rest[-4] + rest[-3])


def _normed(
    x: Any, weight: Any, bias: Any, mean: Any, rstd: Any, share: float, eps: float, to: float, at: float
) -> Any:
    return quantized((x - mean) * rstd * weight + bias, to, at)


ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "elu": _Real(elu_tile, (1.0,)),
    "gelu": _Real(tile.gelu),
    "hardsigmoid": _Real(hardsigmoid_tile),
    "hardswish": _Real(hardswish_tile),
    "leaky_relu": _Real(prelu_tile, (0.01,)),
    "relu": _Real(tile.maximum, (0.0,)),
    "relu6": _Real(between, (0.0, 6.0)),
    "sigmoid": _Real(tile.sigmoid),
    "silu": _Real(tile.silu),
    "softplus": _Real(softplus_tile, (1.0,)),
    "tanh": _Real(tile.tanh),
}
"""By the names of their operators."""
_SOFTMAX = Reducing("quantized_softmax", (Statistic("max", first), Statistic("sum", _power, _inverse)), _share)
_LAYER_NORM = Reducing(
    "quantized_layer_norm", (Statistic("sum", first, _mean), Statistic("sum", _distance, _rstd)), _normed
)
