"""Arithmetic of two tensors, or of one and a number."""

from __future__ import annotations

import math
from typing import Any

import torch

from sley.runtime.frameworks.torch_device.pointwise import pointwise, together
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, empty, on_device, wrap
from sley.runtime.nn import operators as nn
from sley.runtime.nn.elements import minus, plus, times
from sley.runtime.nn.functions import atan_tile, power_tile
from sley.runtime.nn.quotients import whole_floor, whole_trunc
from sley.runtime.tile import language as tile

Value = Any


@operator("add.Tensor")
def add(self: Value, other: Value, *, alpha: Any = 1) -> torch.Tensor:
    dtype = together(self, other)
    if alpha == 1:
        return pointwise(_or if dtype is torch.bool else plus, self, other, dtype=dtype)
    return pointwise(_plus_scaled, self, other, alpha, dtype=dtype)


@operator("sub.Tensor")
def sub(self: Value, other: Value, *, alpha: Any = 1) -> torch.Tensor:
    dtype = together(self, other)
    if dtype is torch.bool:
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported.")
    if alpha == 1:
        return pointwise(minus, self, other, dtype=dtype)
    return pointwise(_plus_scaled, self, other, -alpha, dtype=dtype)


@operator("rsub.Tensor")
def rsub(self: Value, other: Value, alpha: Any = 1) -> torch.Tensor:
    return sub(other, self, alpha=alpha)


@operator("mul.Tensor")
def mul(self: Value, other: Value) -> torch.Tensor:
    return pointwise(times, self, other, dtype=together(self, other))


@operator("div.Tensor")
def div(self: Value, other: Value) -> torch.Tensor:
    dtype = float_type_of(self, other)
    return pointwise(quotient, self, other, dtype=dtype)


@operator("div.Tensor_mode")
def div_mode(self: Value, other: Value, *, rounding_mode: str | None) -> torch.Tensor:
    if rounding_mode is None:
        return div(self, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    dtype = together(self, other)
    if not dtype.is_floating_point:
        return whole(whole_floor if rounding_mode == "floor" else whole_trunc, self, other, dtype)
    return pointwise(_floored if rounding_mode == "floor" else _cut, self, other, dtype=dtype)


@operator("floor_divide")
def floor_divide(self: Value, other: Value) -> torch.Tensor:
    return div_mode(self, other, rounding_mode="floor")


@operator("remainder.Tensor")
def remainder(self: Value, other: Value) -> torch.Tensor:
    dtype = together(self, other)
    if not dtype.is_floating_point:
        return whole(_whole_remainder, self, other, dtype)
    return pointwise(_remainder, self, other, dtype=dtype)


@operator("fmod.Tensor")
def fmod(self: Value, other: Value) -> torch.Tensor:
    dtype = together(self, other)
    if not dtype.is_floating_point:
        return whole(_whole_fmod, self, other, dtype)
    return pointwise(_fmod, self, other, dtype=dtype)


def whole(function: Any, x: Value, y: Value, dtype: torch.dtype) -> torch.Tensor:
    """A function of tiles of integers, numbers among them as arrays. Raises ``ZeroDivisionError``."""
    if not on_device(y) and not int(y):
        raise ZeroDivisionError("an integer divided by 0")
    x, y = (v if on_device(v) else torch.tensor(int(v), dtype=dtype, device="sley") for v in (x, y))
    return pointwise(function, x, y, dtype=dtype)


@operator("maximum")
def maximum(self: Value, other: Value) -> torch.Tensor:
    return pointwise(tile.maximum, self, other, dtype=together(self, other))


@operator("minimum")
def minimum(self: Value, other: Value) -> torch.Tensor:
    return pointwise(tile.minimum, self, other, dtype=together(self, other))


@operator("fmax")
def fmax(self: Value, other: Value) -> torch.Tensor:
    return pointwise(_fmax, self, other, dtype=together(self, other))


@operator("fmin")
def fmin(self: Value, other: Value) -> torch.Tensor:
    return pointwise(_fmin, self, other, dtype=together(self, other))


@operator("copysign.Tensor")
def copysign(self: Value, other: Value) -> torch.Tensor:
    return pointwise(_copysign, self, other, dtype=float_type_of(self, other))


@operator("pow.Tensor_Scalar")
def pow_scalar(self: torch.Tensor, exponent: Any) -> torch.Tensor:
    dtype = together(self, exponent)
    if not self.numel():
        return empty(self.shape, dtype)
    if not dtype.is_floating_point:
        return _whole_power(self, int(exponent), dtype)
    x = self if self.dtype.is_floating_point else self.to(dtype)
    if exponent == int(exponent) and 0 <= abs(exponent) <= 64:
        result = wrap(nn.pow(array(x), float(exponent)), x.dtype) if exponent else torch.ones_like(x)
    else:
        result = pointwise(power_tile, x, float(exponent), dtype=dtype)
    return result if result.dtype == dtype else result.to(dtype)


@operator("pow.Tensor_Tensor")
def pow_tensor(self: Value, exponent: Value) -> torch.Tensor:
    dtype = together(self, exponent)
    if not dtype.is_floating_point:
        return pointwise(_whole_power_of, self, exponent, dtype=dtype)
    return pointwise(power_tile, self, exponent, dtype=dtype)


@operator("pow.Scalar")
def pow_of(self: Any, exponent: torch.Tensor) -> torch.Tensor:
    return pow_tensor(torch.tensor(self, dtype=together(exponent, self), device=exponent.device), exponent)


@operator("atan2")
def atan2(self: Value, other: Value) -> torch.Tensor:
    return pointwise(_atan2, self, other, dtype=float_type_of(self, other))


@operator("hypot")
def hypot(self: Value, other: Value) -> torch.Tensor:
    return pointwise(_hypot, self, other, dtype=float_type_of(self, other))


@operator("bitwise_and.Tensor", "__and__.Tensor")
def bitwise_and(self: Value, other: Value) -> torch.Tensor:
    return pointwise(_and, self, other, dtype=together(self, other))


@operator("bitwise_or.Tensor", "__or__.Tensor")
def bitwise_or(self: Value, other: Value) -> torch.Tensor:
    return pointwise(_or, self, other, dtype=together(self, other))


@operator("bitwise_xor.Tensor", "__xor__.Tensor")
def bitwise_xor(self: Value, other: Value) -> torch.Tensor:
    return pointwise(_xor, self, other, dtype=together(self, other))


@operator("addcmul")
def addcmul(self: Value, tensor1: Value, tensor2: Value, *, value: Any = 1) -> torch.Tensor:
    return pointwise(_addcmul, self, tensor1, tensor2, value, dtype=together(self, tensor1, tensor2))


@operator("addcdiv")
def addcdiv(self: Value, tensor1: Value, tensor2: Value, *, value: Any = 1) -> torch.Tensor:
    return pointwise(_addcdiv, self, tensor1, tensor2, value, dtype=float_type_of(self, tensor1, tensor2))


@operator("lerp.Scalar", "lerp.Tensor")
def lerp(self: Value, end: Value, weight: Value) -> torch.Tensor:
    return pointwise(_lerp, self, end, weight, dtype=self.dtype)


def float_type_of(*values: Value) -> torch.dtype:
    """As ``together``, of integers the default float."""
    kind = together(*values)
    return kind if kind.is_floating_point else torch.get_default_dtype()


def quotient(x: Any, y: Any) -> Any:
    """x / y with one step that takes the error of x · (1 / y) off."""
    if isinstance(y, int | float):
        return x * (1.0 / y if y else math.inf)
    inverse: Any = tile.reciprocal(y)
    first = inverse * x
    rest = (x - first * y) * inverse
    return tile.where(rest - rest == 0.0, first + rest, first)


def _plus_scaled(x: Any, y: Any, alpha: Any) -> Any:
    return x + y * alpha


def _or(x: Any, y: Any) -> Any:
    return x | y


def _and(x: Any, y: Any) -> Any:
    return x & y


def _xor(x: Any, y: Any) -> Any:
    return x ^ y


def _floored(x: Any, y: Any) -> Any:
    return tile.floor(quotient(x, y))


def _cut(x: Any, y: Any) -> Any:
    value = quotient(x, y)
    return tile.where(value < 0.0, -tile.floor(-value), tile.floor(value))


def _fmod(x: Any, y: Any) -> Any:
    return x - _cut(x, y) * y


def _remainder(x: Any, y: Any) -> Any:
    return x - _floored(x, y) * y


def _whole_remainder(x: Any, y: Any) -> Any:
    return x - whole_floor(x, y) * y


def _whole_fmod(x: Any, y: Any) -> Any:
    return x - whole_trunc(x, y) * y


def _hypot(x: Any, y: Any) -> Any:
    a, b = tile.maximum(x, -x), tile.maximum(y, -y)
    large, small = tile.maximum(a, b), tile.minimum(a, b)
    ratio = small * tile.reciprocal(tile.where(large == 0.0, 1.0, large))
    return tile.sqrt(ratio * ratio + 1.0) * large


def _atan2(y: Any, x: Any) -> Any:
    a, b = tile.maximum(x, -x), tile.maximum(y, -y)
    large, small = tile.maximum(a, b), tile.minimum(a, b)
    arc = atan_tile(small * tile.reciprocal(tile.where(large == 0.0, 1.0, large)))
    arc = tile.where(b > a, 1.5707963267948966 - arc, arc)
    arc = tile.where(x < 0.0, 3.141592653589793 - arc, arc)
    return tile.where(y < 0.0, -arc, arc)


def _whole_power_of(x: Any, y: Any) -> Any:
    """By squares: exponents of int32 from 0 to 31 bits; a negative one gives 0, but of 1 and -1."""
    result: Any = 1
    square, rest = x, y
    for _ in range(5):
        odd = rest & 1
        result = tile.where(odd != 0, square * result, result)
        square, rest = square * square, tile.shift_right(rest, 1)
    one = tile.where(x == 1, 1, tile.where(x == -1, tile.where((y & 1) != 0, -1, 1), 0))
    return tile.where(y < 0, one, result)


def _fmax(x: Any, y: Any) -> Any:
    return tile.where(x == x, tile.where(y == y, tile.maximum(x, y), x), y)


def _fmin(x: Any, y: Any) -> Any:
    return tile.where(x == x, tile.where(y == y, tile.minimum(x, y), x), y)


def _copysign(x: Any, y: Any) -> Any:
    size = tile.maximum(x, -x)
    if isinstance(y, int | float):
        return -size if math.copysign(1.0, y) < 0 else size
    return tile.where(tile.where(y == 0.0, tile.reciprocal(y), y) < 0.0, -size, size)


def _addcmul(x: Any, a: Any, b: Any, value: Any) -> Any:
    return x + a * b * value


def _addcdiv(x: Any, a: Any, b: Any, value: Any) -> Any:
    return x + quotient(a, b) * value


def _lerp(x: Any, y: Any, weight: Any) -> Any:
    return x + (y - x) * weight


def _whole_power(x: torch.Tensor, exponent: int, dtype: torch.dtype) -> torch.Tensor:
    if exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return pow_tensor(x, torch.tensor(exponent, dtype=dtype, device=x.device))
