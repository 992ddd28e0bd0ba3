"""Operators on elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.networks.compilation import Compilation, Value, stored
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.order import in_memory_order
from sley.runtime.networks.passes.narrow import RESULT
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.networks.types import element_type
from sley.runtime.nn import operators as nn
from sley.runtime.nn.activations import GELU_TILES
from sley.runtime.nn.mapping import FP32, mapped, mapped_many


def number(value: Value) -> Any:
    """A known array of one element as a number, which a bool is none of; else the value. Raises ``UnsupportedType``,
    ``BadRequest``."""
    if isinstance(value, np.ndarray) and value.size == 1 and value.ndim <= 1 and value.dtype != np.bool_:
        return stored(value, "a constant").item()
    return value


def operands(c: Compilation, *values: Value) -> list[Any]:
    """Values as operands of an element-wise operator: numbers stay numbers, if an array is there."""
    return [number(value) if isinstance(number(value), int | float) else c.array(value) for value in values]


_UNARY: dict[str, Callable[..., Buffer]] = {
    "Abs": nn.abs,
    "Acos": nn.acos,
    "Acosh": nn.acosh,
    "Asin": nn.asin,
    "Asinh": nn.asinh,
    "Atan": nn.atan,
    "Atanh": nn.atanh,
    "Ceil": nn.ceil,
    "Cos": nn.cos,
    "Cosh": nn.cosh,
    "Digamma": nn.digamma,
    "Erf": nn.erf,
    "Erfinv": nn.erfinv,
    "Exp": nn.exp,
    "Floor": nn.floor,
    "HardSwish": nn.hardswish,
    "IsNaN": nn.isnan,
    "Lgamma": nn.lgamma,
    "Log": nn.log,
    "Mish": nn.mish,
    "Neg": nn.neg,
    "Not": nn.logical_not,
    "Reciprocal": nn.reciprocal,
    "Relu": nn.relu,
    "Round": nn.round,
    "Sigmoid": nn.sigmoid,
    "Sign": nn.sign,
    "Sin": nn.sin,
    "Sinh": nn.sinh,
    "Softplus": nn.softplus,
    "Softsign": nn.softsign,
    "Sqrt": nn.sqrt,
    "Tan": nn.tan,
    "Tanh": nn.tanh,
}
_BINARY: dict[str, Callable[..., Buffer]] = {
    "Add": nn.add,
    "And": nn.logical_and,
    "Equal": nn.eq,
    "Greater": nn.gt,
    "GreaterOrEqual": nn.ge,
    "Less": nn.lt,
    "LessOrEqual": nn.le,
    "Mul": nn.mul,
    "Or": nn.logical_or,
    "PRelu": nn.prelu,
    "Sub": nn.sub,
    "Xor": nn.logical_xor,
}


@operator(*_UNARY)
def unary(c: Compilation, node: Node, x: Buffer) -> Buffer:
    return in_memory_order(_UNARY[node.operator], x, stream=c.stream)


@operator(*_BINARY)
def binary(c: Compilation, node: Node, x: Value, y: Value) -> Buffer:
    return in_memory_order(_BINARY[node.operator], *operands(c, x, y), stream=c.stream)


@operator("Region")
def region(c: Compilation, node: Node, *values: Value) -> Any:
    """What the pass ``regions`` made of several operators; with a second result the same in bfloat16."""
    arrays = [c.array(value) for value in values]
    function = node.attributes["region"]
    if len(node.outputs) == 1:
        kind = node.attributes.get(RESULT, np.dtype(function.result))
        return in_memory_order(mapped, "region", function, *arrays, dtype=kind, computed=FP32, stream=c.stream)
    more: Any = {"dtypes": (FP32, BF16), "outs": (None, None), "computed": FP32, "stream": c.stream}
    return in_memory_order(mapped_many, "region", Twice(function), *arrays, **more)


@dataclass(frozen=True)
class Twice:
    """A function of tiles whose result is stored twice."""

    function: Callable[..., Any]

    def __call__(self, *tiles: Any) -> tuple[Any, Any]:
        result = self.function(*tiles)
        return result, result


@operator("Div")
def div(c: Compilation, node: Node, x: Value, y: Value) -> Buffer:
    a, b = c.array(x), c.array(y)
    result = in_memory_order(nn.div, a, b, stream=c.stream)
    if a.dtype.kind == "i":  # towards zero, as ONNX divides integers
        return nn.cast(nn.trunc(result, stream=c.stream), a.dtype, stream=c.stream)
    return result


@operator("Pow")
def power(c: Compilation, node: Node, x: Value, y: Value) -> Buffer:
    """Of the type of x; of integers the nearest one, since powers by logarithms are a little off."""
    base, exponent = c.array(x), number(y)
    if isinstance(exponent, int | float):
        result = nn.pow(base, exponent, stream=c.stream)
    else:
        result = nn.power(base, c.array(y), stream=c.stream)
    return result if result.dtype == base.dtype else nn.cast(result, base.dtype, stream=c.stream)


@operator("Max", "Min", "Sum", "Mean")
def several(c: Compilation, node: Node, *values: Value) -> Buffer:
    function = {"Max": nn.maximum, "Min": nn.minimum}.get(node.operator, nn.add)
    arrays = [c.array(value) for value in values]
    if len(arrays) == 1:
        return arrays[0]
    total = reduce(lambda x, y: in_memory_order(function, x, y, stream=c.stream), arrays)
    return nn.mul(total, 1 / len(arrays), stream=c.stream) if node.operator == "Mean" else total


@operator("Where")
def where(c: Compilation, node: Node, condition: Value, x: Value, y: Value) -> Buffer:
    return nn.where(c.array(condition), c.array(x), c.array(y), stream=c.stream)


@operator("Clip")
def clip(c: Compilation, node: Node, x: Buffer, low: Value | None = None, high: Value | None = None) -> Buffer:
    ends = [None if end is None else c.known(node, end, "a bound").item() for end in (low, high)]
    return x if ends == [None, None] else in_memory_order(nn.clamp, x, *ends, stream=c.stream)


@operator("Identity")
def identity(c: Compilation, node: Node, x: Buffer) -> Buffer:
    return x


@operator("Cast", "CastLike")
def cast(c: Compilation, node: Node, x: Buffer, like: Value | None = None) -> Buffer:
    kind = like.dtype if like is not None else element_type(node.attributes["to"])
    kept = {np.dtype(np.int64): np.dtype(np.int32)}.get(kind, kind)
    if kept.kind in "iu" and x.dtype.kind == "f":  # towards zero, as ONNX converts
        x = nn.trunc(x, stream=c.stream)
    if (
        kept not in (np.dtype(bool), np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.float32))
        and str(kept) != "bfloat16"
    ):
        raise UnsupportedOperator(f"{node}: to {kind}; the device has bool, int8, int32, bfloat16 and float32")
    return nn.cast(x, kept, stream=c.stream)


@operator("LeakyRelu", "ThresholdedRelu", "Elu", "Celu", "Selu", "Swish")
def with_alpha(c: Compilation, node: Node, x: Buffer) -> Buffer:
    name, alpha = node.operator, node.attributes.get("alpha")
    if name == "LeakyRelu":
        return in_memory_order(nn.leaky_relu, x, 0.01 if alpha is None else alpha, stream=c.stream)
    if name == "ThresholdedRelu":
        return nn.threshold(x, 1.0 if alpha is None else alpha, 0.0, stream=c.stream)
    if name == "Celu":
        return nn.celu(x, 1.0 if alpha is None else alpha, stream=c.stream)
    if name == "Elu":
        return nn.elu(x, 1.0 if alpha is None else alpha, stream=c.stream)
    if name == "Swish":
        factor = 1.0 if alpha is None else alpha
        return nn.glu(x, nn.mul(x, factor, stream=c.stream) if factor != 1 else x, stream=c.stream)
    alpha = 1.67326319217681884765625 if alpha is None else alpha
    gamma = node.attributes.get("gamma", 1.05070102214813232421875)
    return nn.mul(nn.elu(x, alpha, stream=c.stream), gamma, stream=c.stream)


@operator("HardSigmoid")
def hard_sigmoid(c: Compilation, node: Node, x: Buffer) -> Buffer:
    slope, shift = node.attributes.get("alpha", 0.2), node.attributes.get("beta", 0.5)
    line = nn.add(nn.mul(x, slope, stream=c.stream), shift, stream=c.stream)
    return nn.hardtanh(line, 0.0, 1.0, stream=c.stream)


@operator("Gelu")
def gelu(c: Compilation, node: Node, x: Buffer) -> Buffer:
    function = GELU_TILES[node.attributes.get("approximate", "none")]
    kind = node.attributes.get(RESULT, x.dtype)
    return in_memory_order(mapped, "gelu", function, x, dtype=kind, computed=FP32, stream=c.stream)


@operator("Shrink")
def shrink(c: Compilation, node: Node, x: Buffer) -> Buffer:
    bias, bound = node.attributes.get("bias", 0.0), node.attributes.get("lambd", 0.5)
    moved = nn.where(
        nn.gt(x, bound, stream=c.stream),
        nn.sub(x, bias, stream=c.stream),
        nn.where(nn.lt(x, -bound, stream=c.stream), nn.add(x, bias, stream=c.stream), 0.0, stream=c.stream),
        stream=c.stream,
    )
    return moved


@operator("IsInf")
def isinf(c: Compilation, node: Node, x: Buffer) -> Buffer:
    below, above = node.attributes.get("detect_negative", 1), node.attributes.get("detect_positive", 1)
    if below and above:
        return nn.isinf(x, stream=c.stream)
    return nn.eq(x, float("inf") if above else -float("inf"), stream=c.stream) if below or above else nn.ne(x, x)


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(c: Compilation, node: Node, x: Value, y: Value) -> Buffer:
    name = node.operator
    function = {"BitwiseAnd": nn.bitwise_and, "BitwiseOr": nn.bitwise_or, "BitwiseXor": nn.bitwise_xor}[name]
    return function(*operands(c, x, y), stream=c.stream)


@operator("BitwiseNot")
def bitwise_not(c: Compilation, node: Node, x: Buffer) -> Buffer:
    return nn.bitwise_xor(x, -1, stream=c.stream)


@operator("Mod")
def mod(c: Compilation, node: Node, x: Value, y: Value) -> Buffer:
    a, b = c.array(x), c.array(y)
    rounding = nn.trunc if node.attributes.get("fmod", 0) else nn.floor
    quotient = rounding(nn.div(a, b, stream=c.stream), stream=c.stream)
    if a.dtype.kind == "i":
        quotient = nn.cast(quotient, a.dtype, stream=c.stream)
    return nn.sub(a, nn.mul(quotient, b, stream=c.stream), stream=c.stream)
