"""Random operators of PyTorch in ONNX: uniform numbers and what is made of them, as on the device ``sley``, so that a
compiled graph draws what the same operators draw one by one.

The exporter's own are ``Dropout`` and ``Bernoulli``, two of which it takes for one if they have the same input, and a
``Multinomial`` that puts back what it draws whatever it is told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from onnxscript import ir
from onnxscript import opset23 as op

from sley.runtime.frameworks.from_torch.values import constant, like

FLOAT = ir.DataType.FLOAT


def dropout(input: Any, p: float, train: bool) -> Any:
    return native_dropout(input, p, train)[0]


def native_dropout(input: Any, p: float, train: bool | None = True) -> tuple[Any, Any]:
    """The result, and where elements stayed."""
    if not train or p == 0:
        return op.Identity(input), op.Expand(constant(value=ir.tensor([True])), op.Shape(input))
    stays = op.Less(_uniform(input), constant(value_float=1 - p))
    scaled = op.Mul(input, like(input, 1 / (1 - p) if p < 1 else 0.0))
    return op.Where(stays, scaled, like(input, 0.0)), stays


def uniform(self: Any, start: float = 0.0, end: float = 1.0) -> Any:
    return op.CastLike(
        op.Add(op.Mul(_uniform(self), constant(value_float=end - start)), constant(value_float=start)), self
    )


def exponential(self: Any, lambd: float = 1.0) -> Any:
    return op.CastLike(
        op.Mul(op.Log(op.Sub(constant(value_float=1.0), _uniform(self))), constant(value_float=-1 / lambd)), self
    )


def randperm(n: int, dtype: int = -1, **_: Any) -> Any:
    """The order of so many random numbers."""
    numbers = _uniform(op.ConstantOfShape(constant(value_ints=[n])))
    order = op.TopK(numbers, constant(value_ints=[n]), axis=0, largest=0)[1]
    return order if dtype == -1 else op.Cast(order, to=dtype)


def bernoulli(self: Any) -> Any:
    chance = op.Cast(self, to=FLOAT)
    return op.CastLike(op.Less(_uniform(self), chance), self)


def multinomial(self: Any, num_samples: int, replacement: bool = False) -> Any:
    """Without replacement by a race: those whose exponential waiting times by their weights end first."""
    weights: Any = op.Cast(self, to=FLOAT)
    last = constant(value_ints=[-1])
    if not replacement or num_samples == 1:
        return op.TopK(op.Div(weights, exponential(weights)), constant(value_ints=[num_samples]), axis=-1)[1]
    shares: Any = op.Div(weights, op.ReduceSum(weights, last, keepdims=1))
    ends = op.Unsqueeze(op.CumSum(shares, constant(value_int=-1)), constant(value_ints=[-2]))
    sides = constant(value_ints=[*self.shape[:-1], num_samples])
    numbers = op.Unsqueeze(_uniform(op.ConstantOfShape(sides)), last)
    passed: Any = op.Cast(op.LessOrEqual(ends, numbers), to=ir.DataType.INT64)
    count: Any = op.ReduceSum(passed, last, keepdims=0)
    return op.Min(count, constant(value_int=self.shape[-1] - 1))


def _uniform(shaped: Any) -> Any:
    """float32 from 0 to below 1, of the shape of a value."""
    return op.RandomUniformLike(shaped, dtype=FLOAT)


aten = torch.ops.aten
DRAWS: dict[Callable[..., Any], Callable[..., Any]] = {
    aten.dropout.default: dropout,
    aten.native_dropout.default: native_dropout,
    aten.bernoulli.default: bernoulli,
    aten.uniform.default: uniform,
    aten.exponential.default: exponential,
    aten.randperm.default: randperm,
    aten.multinomial.default: multinomial,
}
"""Part of ``translations.TABLE``."""
