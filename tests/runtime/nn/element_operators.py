"""Element-wise operators of ``nn``, one line each: what they are in float64, and how far from that they may be."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Of:
    """An operator of so many arrays, then of the numbers ``more`` and of ``options``.

    ``ulps``: the largest error, in units of the last place of fp32 of the result, or of ``scale`` of the operands;
    besides it ``absolute``. ``low``, ``high``, and ``least`` in magnitude: of operands. ``to_bool``: whether
    the result is bool. ``whole``: whether integers stay integers.
    ``floats``: whether it takes floats.
    """

    arrays: int
    reference: Function
    ulps: float = 0.0
    more: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    absolute: float = 0.0
    low: float = -3e38
    high: float = 3e38
    least: float = 0.0
    scale: Function | None = None
    to_bool: bool = False
    whole: bool = False
    floats: bool = True


def truth(reference: Function, arrays: int = 2) -> Of:
    return Of(arrays, reference, to_bool=True)


def slope(forward: Function, ulps: float, absolute: float = 0.0, more: tuple[Any, ...] = (), bound: float = 1e4) -> Of:
    """The gradient of a function by its operand: by differences in float64, which are 1e-9 off."""

    def reference(grad: Any, x: Any, *rest: Any) -> Any:
        step = 1e-6 * np.maximum(np.abs(x), 1)
        return grad * (forward(x + step, *rest) - forward(x - step, *rest)) / (2 * step)

    return Of(2, reference, ulps, more, absolute=absolute + 2e-9, low=-bound, high=bound, scale=lambda g, *x: g)


erf, erfc = np.vectorize(math.erf, otypes=[float]), np.vectorize(math.erfc, otypes=[float])


@np.vectorize
def lgamma(x: float) -> float:
    if math.isnan(x) or math.isinf(x):
        return abs(x)
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


@np.vectorize
def digamma(x: float) -> float:
    """By the recurrence up to 20, then an asymptotic series; below 0.5 by the reflection."""
    if math.isnan(x) or x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.nan
    if x < 0.5:
        rest = x - round(x)
        return float(digamma(1 - x)) - (math.pi / math.tan(math.pi * rest) if rest else math.inf)
    found = 0.0
    while x < 20:
        found, x = found - 1 / x, x + 1
    square = 1 / (x * x)
    return found + math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square / 252))


@np.vectorize
def erfinv(x: float) -> float:
    """By Newton's method, from x itself or from quantiles."""
    if not abs(x) < 1:
        return x * math.inf if abs(x) == 1 else math.nan
    y = x if abs(x) < 0.5 else NormalDist().inv_cdf((1 + x) / 2) / math.sqrt(2)
    for _ in range(8):
        y -= (math.erf(y) - x) * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return y


def sigmoid(x: Any) -> Any:
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


def softplus(x: Any, beta: float = 1.0) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(beta * x))) / beta


def elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x < 0, np.expm1(np.minimum(x, 0)) * alpha, x)


def selu(x: Any) -> Any:
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def gelu(x: Any) -> Any:
    return x * erfc(-x / math.sqrt(2)) / 2


def silu(x: Any) -> Any:
    return x * sigmoid(x)


def mish(x: Any) -> Any:
    return x * np.tanh(softplus(x))


def hardsigmoid(x: Any) -> Any:
    return np.clip(x / 6 + 0.5, 0, 1)


def hardtanh(x: Any, low: float = -1.0, high: float = 1.0) -> Any:
    return np.clip(x, low, high)


def leaky(x: Any, slope: Any = 0.01) -> Any:
    return np.where(x < 0, x * slope, x)


def sum_of(*terms: Any) -> Any:
    return sum(np.abs(term) for term in terms)


ARITHMETIC: dict[str, Of | tuple[Of, ...]] = {
    "add": (
        Of(2, np.add, 0.5, whole=True),
        Of(2, lambda x, y: x + 3 * y, 1.5, options={"alpha": 3}, scale=lambda x, y: sum_of(x, 3 * y), whole=True),
    ),
    "sub": (
        Of(2, np.subtract, 0.5, whole=True),
        Of(2, lambda x, y: x - 3 * y, 1.5, options={"alpha": 3}, scale=lambda x, y: sum_of(x, 3 * y), whole=True),
    ),
    "mul": Of(2, np.multiply, 0.5, whole=True),
    "div": Of(2, np.divide, 1.75, low=-1e15, high=1e15),
    "maximum": Of(2, np.maximum, whole=True),
    "minimum": Of(2, np.minimum, whole=True),
    "clamp": (
        Of(1, lambda x, low, high: np.clip(x, low, high), more=(-1, 2), whole=True),
        Of(1, np.maximum, more=(-1,), whole=True),
        Of(1, lambda x, low, high: np.minimum(x, high), more=(None, 2), whole=True),
    ),
    "neg": Of(1, np.negative, whole=True),
    "abs": Of(1, np.abs, whole=True),
    "square": Of(1, np.square, 0.5, whole=True),
    "sign": Of(1, lambda x: np.where(np.isnan(x), 0, np.sign(x)), whole=True),
    "pow": (
        Of(1, np.power, 1.5, more=(3,), whole=True),
        Of(1, np.power, 10, more=(-5,), low=-1e7, high=1e7),
        Of(1, lambda x, exponent: np.ones_like(x), more=(0,)),
        Of(1, lambda x, exponent: np.sqrt(x), 1.0, more=(0.5,)),
        Of(1, lambda x, exponent: 1 / np.sqrt(x), 1.0, more=(-0.5,)),
        Of(1, np.power, 250, more=(2.5,), low=0.0, high=1e15),
    ),
    "power": Of(2, np.power, 250, low=0.0, high=30.0),
    "bitwise_and": Of(2, np.bitwise_and, whole=True, floats=False),
    "bitwise_or": Of(2, np.bitwise_or, whole=True, floats=False),
    "bitwise_xor": Of(2, np.bitwise_xor, whole=True, floats=False),
    "lerp": Of(
        3,
        lambda x, y, w: x + w * (y - x),
        2.0,
        least=1e-15,
        low=-1e15,
        high=1e15,
        scale=lambda x, y, w: sum_of(x, w * np.abs(x), w * np.abs(y)),
        whole=True,
    ),
    "addcmul": Of(
        3,
        lambda x, a, b: x + 0.5 * a * b,
        2.0,
        options={"value": 0.5},
        least=1e-15,
        low=-1e15,
        high=1e15,
        scale=lambda x, a, b: sum_of(x, a * b),
    ),
    "addcdiv": Of(
        3,
        lambda x, a, b: x + 0.5 * a / b,
        2.5,
        options={"value": 0.5},
        least=1e-15,
        low=-1e15,
        high=1e15,
        scale=lambda x, a, b: sum_of(x, a / b),
    ),
}
COMPARISONS: dict[str, Of | tuple[Of, ...]] = {
    "eq": truth(np.equal),
    "ne": truth(np.not_equal),
    "lt": truth(np.less),
    "le": truth(np.less_equal),
    "gt": truth(np.greater),
    "ge": truth(np.greater_equal),
    "isnan": truth(np.isnan, 1),
    "isinf": truth(np.isinf, 1),
    "isfinite": truth(np.isfinite, 1),
    "logical_and": truth(np.logical_and),
    "logical_or": truth(np.logical_or),
    "logical_xor": truth(np.logical_xor),
    "logical_not": truth(np.logical_not, 1),
    "where": Of(3, lambda condition, x, y: np.where(condition != 0, x, y)),
    "masked_fill": Of(2, lambda x, mask, value: np.where(mask != 0, value, x), more=(5.0,)),
}
FUNCTIONS: dict[str, Of | tuple[Of, ...]] = {
    "exp": Of(1, np.exp, 1.0),
    "exp2": Of(1, np.exp2, 1.0),
    "expm1": Of(1, np.expm1, 3.0),
    "log": Of(1, np.log, 1.5),
    "log2": Of(1, np.log2, 1.0),
    "log10": Of(1, np.log10, 2.25),
    "log1p": Of(1, np.log1p, 3.5),
    "reciprocal": Of(1, lambda x: 1 / x, 1.0),
    "sqrt": Of(1, np.sqrt, 1.0),
    "rsqrt": Of(1, lambda x: 1 / np.sqrt(x), 1.0),
    "floor": Of(1, np.floor),
    "ceil": Of(1, np.ceil),
    "round": Of(1, np.round),
    "trunc": Of(1, np.trunc),
    "erf": Of(1, erf, 0.0, absolute=2.0**-22),
    "erfc": Of(1, erfc, 2.0, absolute=2.0**-24),
    "erfinv": Of(1, erfinv, 4.0),
    "lgamma": Of(1, lgamma, 12.0, scale=lambda x: 1 + np.abs(x) + np.abs(lgamma(x)), low=-1e6, high=1e30),
    "digamma": Of(1, digamma, 6.0, scale=lambda x: 1 + np.abs(x) + np.abs(digamma(x)), low=-1e6),
    "tan": Of(1, np.tan, 4, low=-8192.0, high=8192.0, scale=lambda x: 1 + np.tan(x) ** 2),
    "asinh": Of(1, np.arcsinh, 4.0),
    "acosh": Of(1, np.arccosh, 4.0),
    "atanh": Of(1, np.arctanh, 5.0),
    "sinh": Of(1, np.sinh, 2.5),
    "cosh": Of(1, np.cosh, 2.0),
    "asin": Of(1, np.arcsin, 0.0, absolute=2.0**-21, low=-1.0, high=1.0),
    "acos": Of(1, np.arccos, 0.0, absolute=2.0**-20, low=-1.0, high=1.0),
    "atan": Of(1, np.arctan, 0.0, absolute=2.0**-21),
    "sin": Of(1, np.sin, 0.0, absolute=2.0**-22, low=-8192.0, high=8192.0),
    "cos": Of(1, np.cos, 0.0, absolute=2.0**-22, low=-8192.0, high=8192.0),
}
NONLINEAR: dict[str, Of | tuple[Of, ...]] = {
    "relu": Of(1, lambda x: np.maximum(x, 0), whole=True),
    "relu6": Of(1, lambda x: np.clip(x, 0, 6)),
    "hardtanh": (Of(1, hardtanh), Of(1, hardtanh, more=(-2.0, 0.5))),
    "leaky_relu": (Of(1, leaky, 1.0), Of(1, leaky, 1.0, more=(0.3,))),
    "prelu": Of(2, leaky, 0.5),
    "elu": (Of(1, elu, 1.0, absolute=2.0**-24), Of(1, elu, 2.0, more=(0.7,), absolute=2.0**-24)),
    "celu": Of(1, lambda x, alpha: alpha * elu(x / alpha), 3.0, more=(0.7,), absolute=2.0**-24),
    "selu": Of(1, selu, 2.0, absolute=2.0**-23),
    "tanh": Of(1, np.tanh, 1.0),
    "sigmoid": Of(1, sigmoid, 2.75, low=-31.9),
    "log_sigmoid": Of(1, lambda x: -softplus(-x), 1.0, absolute=2.0**-22),
    "hardsigmoid": Of(1, hardsigmoid, 0.0, absolute=2.0**-24),
    "hardswish": Of(1, lambda x: x * hardsigmoid(x), 1.5, absolute=2.0**-22),
    "softplus": (Of(1, softplus, 1.0, absolute=2.0**-22), Of(1, softplus, 1.0, more=(2.0,), absolute=2.0**-23)),
    "softsign": Of(1, lambda x: x / (1 + np.abs(x)), 3.0),
    "tanhshrink": Of(1, lambda x: x - np.tanh(x), 0.5, absolute=2.0**-23),
    "softshrink": Of(1, lambda x, b: np.sign(x) * np.maximum(np.abs(x) - b, 0), 0.5, more=(0.5,)),
    "hardshrink": Of(1, lambda x, b: np.where(np.abs(x) <= b, 0, x), more=(0.5,)),
    "threshold": Of(1, lambda x, b, v: np.where(x <= b, v, x), more=(0.5, -3.0)),
    "mish": Of(1, mish, 3.0, absolute=2.0**-23),
    "swiglu": Of(2, lambda g, x: silu(g) * x, 4.0, least=1e-15, low=-31.0, high=60.0),
    "geglu": Of(2, lambda g, x: gelu(g) * x, 4.0, least=1e-15, low=-3.0, high=60.0),
    "glu": Of(2, lambda x, g: x * sigmoid(g), 3.5, least=1e-15, low=-31.0, high=60.0),
}
GRADIENTS: dict[str, Of | tuple[Of, ...]] = {
    "relu_backward": slope(lambda x: np.maximum(x, 0), 0.0),
    "hardtanh_backward": slope(hardtanh, 0.0, more=(-2.0, 0.5)),
    "leaky_relu_backward": slope(leaky, 1.0, more=(0.3,)),
    "elu_backward": slope(elu, 3.0, more=(0.7,)),
    "selu_backward": slope(selu, 3.5),
    "tanh_backward": Of(2, lambda grad, y: grad * (1 - y * y), 2.0, low=-1.0, high=1.0, scale=lambda grad, y: grad),
    "sigmoid_backward": Of(2, lambda g, y: g * (1 - y) * y, 2.0, low=0.0, high=1.0, scale=lambda grad, y: grad),
    "log_sigmoid_backward": slope(lambda x: -softplus(-x), 3.0),
    "hardsigmoid_backward": slope(hardsigmoid, 1.0),
    "hardswish_backward": slope(lambda x: x * hardsigmoid(x), 3.0),
    "gelu_backward": slope(gelu, 4.0),
    "silu_backward": slope(silu, 4.0),
    "mish_backward": slope(mish, 6.0),
    "softplus_backward": slope(softplus, 3.0, more=(2.0,)),
    "softsign_backward": slope(lambda x: x / (1 + np.abs(x)), 4.0),
}
TABLE = ARITHMETIC | COMPARISONS | FUNCTIONS | NONLINEAR | GRADIENTS


def lines(name: str) -> tuple[Of, ...]:
    """The ways in which an operator is called."""
    found = TABLE[name]
    return found if isinstance(found, tuple) else (found,)
