"""Functions of one element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.pointwise import converted, float_type, pointwise, together
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, empty, wrap
from sley.runtime.frameworks.torch_device.types import stored
from sley.runtime.nn import operators as nn
from sley.runtime.nn.mapping import cast
from sley.runtime.tile import language as tile

REAL: dict[str, Callable[..., Buffer]] = {
    "acos": nn.acos,
    "acosh": nn.acosh,
    "asin": nn.asin,
    "asinh": nn.asinh,
    "atan": nn.atan,
    "atanh": nn.atanh,
    "cos": nn.cos,
    "cosh": nn.cosh,
    "digamma": nn.digamma,
    "erf": nn.erf,
    "erfc": nn.erfc,
    "erfinv": nn.erfinv,
    "exp": nn.exp,
    "exp2": nn.exp2,
    "expm1": nn.expm1,
    "lgamma": nn.lgamma,
    "log": nn.log,
    "log10": nn.log10,
    "log1p": nn.log1p,
    "log2": nn.log2,
    "reciprocal": nn.reciprocal,
    "rsqrt": nn.rsqrt,
    "sigmoid": nn.sigmoid,
    "sin": nn.sin,
    "sinh": nn.sinh,
    "sqrt": nn.sqrt,
    "tan": nn.tan,
    "tanh": nn.tanh,
}
"""Of integers they make floats."""
WHOLE: dict[str, Callable[..., Buffer]] = {"ceil": nn.ceil, "floor": nn.floor, "round": nn.round, "trunc": nn.trunc}
"""Integers are what they are."""
SAME: dict[str, Callable[..., Buffer]] = {"abs": nn.abs, "neg": nn.neg, "sign": nn.sign, "sgn": nn.sign}


def applied(function: Callable[..., Buffer], x: torch.Tensor, dtype: torch.dtype, *more: Any) -> torch.Tensor:
    """A function of ``nn`` as one of tensors; results of another type are converted."""
    if not x.numel():
        return empty(x.shape, dtype)
    result = function(array(x), *more)
    return wrap(result if result.dtype == stored(dtype) else cast(result, stored(dtype)), dtype)


def _enter(name: str, function: Callable[..., Buffer], kind: str) -> None:
    def run(self: torch.Tensor) -> torch.Tensor:
        if kind == "whole" and not self.dtype.is_floating_point:
            return converted(self, self.dtype)
        return applied(function, self, float_type(self) if kind == "real" else self.dtype)

    run.__module__ = __name__
    operator(name)(run)


for _table, _kind in ((REAL, "real"), (WHOLE, "whole"), (SAME, "same")):
    for _name, _function in _table.items():
        _enter(_name, _function, _kind)


@operator("logical_not")
def logical_not(self: torch.Tensor) -> torch.Tensor:
    return applied(nn.logical_not, self, torch.bool)


@operator("bitwise_not")
def bitwise_not(self: torch.Tensor) -> torch.Tensor:
    return logical_not(self) if self.dtype is torch.bool else pointwise(_xor, self, -1, dtype=self.dtype)


@operator("signbit")
def signbit(self: torch.Tensor) -> torch.Tensor:
    return pointwise(_signbit, self, dtype=torch.bool, computed=torch.float32)


@operator("angle")
def angle(self: torch.Tensor) -> torch.Tensor:
    return pointwise(_angle, self, dtype=float_type(self))


@operator("isnan")
def isnan(self: torch.Tensor) -> torch.Tensor:
    return applied(nn.isnan, self, torch.bool)


@operator("nan_to_num")
def nan_to_num(
    self: torch.Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> torch.Tensor:
    if not self.dtype.is_floating_point:
        return converted(self, self.dtype)
    ends = torch.finfo(self.dtype)
    most, least = ends.max if posinf is None else posinf, ends.min if neginf is None else neginf
    return pointwise(_finite, self, nan or 0.0, most, least, dtype=self.dtype)


@operator("clamp", "clamp.Tensor")
def clamp(self: torch.Tensor, min: Any = None, max: Any = None) -> torch.Tensor:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    dtype = together(self, *(end for end in (min, max) if end is not None))
    if min is None:
        return pointwise(tile.minimum, self, max, dtype=dtype)
    if max is None:
        return pointwise(tile.maximum, self, min, dtype=dtype)
    return pointwise(_between, self, min, max, dtype=dtype)


@operator("clamp_min", "clamp_min.Tensor")
def clamp_min(self: torch.Tensor, min: Any) -> torch.Tensor:
    return clamp(self, min)


@operator("clamp_max", "clamp_max.Tensor")
def clamp_max(self: torch.Tensor, max: Any) -> torch.Tensor:
    return clamp(self, None, max)


def _xor(x: Any, y: Any) -> Any:
    return x ^ y


def _signbit(x: Any) -> Any:
    """Of zeros the sign of 1 / x, which is infinite."""
    return tile.where(x == 0.0, tile.reciprocal(x), x) < 0.0


def _angle(x: Any) -> Any:
    return tile.where(x < 0.0, math.pi, x * 0.0)


def _finite(x: Any, nan: Any, most: Any, least: Any) -> Any:
    ends = tile.where(x == math.inf, most, tile.where(x == -math.inf, least, x))
    return tile.where(x == x, ends, nan)


def _between(x: Any, low: Any, high: Any) -> Any:
    return tile.minimum(tile.maximum(x, low), high)
