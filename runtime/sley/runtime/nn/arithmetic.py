"""Arithmetic on elements, with shapes broadcast as in numpy.

All functions here and in ``comparisons`` and ``functions`` are alike:

Parameters
----------
x, y: arrays of bool, int8, int32, bfloat16 or float32, of any shape; ``y`` also a number. One at least is of the
    device; others of the host are copied there. Views of any strides; where elements do not lie side by side along the
    axis along which those of the result do, each one takes some 10 cycles.
out: array for the result, of its shape and type; a new one if not given. An operand, but no part of one.
stream: where to run; the device's default stream if not given.

The result has the type that operands have together: of floats float32 before bfloat16, before integers int32, int8; of
bools int8 here. A number has the type of the array, but a float makes integers float32. Floats are computed in fp32 and
rounded to the result's type once, at the end, so the error of one operation is half a unit in the last place (ulp);
integers in int32 modulo 2^32, saturated when they become int8. Calls return before the work is done, and raise
``ShapeMismatch``, ``UnsupportedType``, ``BadRequest``, ``BufferFreed``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import UnsupportedType
from sley.runtime.nn.elements import between, minus, over, plus, times
from sley.runtime.nn.mapping import BOOL, FP32, INT8, INT32, Operand, mapped, promoted, promoted_float
from sley.runtime.tile import language as tile


def add(x: Operand, y: Operand, *, alpha: float = 1, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x + alpha · y."""
    if alpha == 1:
        return _of_numbers("add", plus, x, y, out=out, stream=stream)
    return _of_numbers("add", _add_scaled, x, y, alpha, out=out, stream=stream)


def sub(x: Operand, y: Operand, *, alpha: float = 1, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x - alpha · y."""
    if alpha == 1:
        return _of_numbers("sub", minus, x, y, out=out, stream=stream)
    return _of_numbers("sub", _add_scaled, x, y, -alpha, out=out, stream=stream)


def mul(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x · y."""
    return _of_numbers("mul", times, x, y, out=out, stream=stream)


def div(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x · (1 / y), each rounded to fp32: 1.75 ulp; 0 for y above 2^126; of integers float32."""
    kind = promoted_float(x, y)
    if isinstance(y, int | float) and not y:
        raise BadRequest("div by the number 0; give an array, whose quotients are infinite")
    return mapped("div", over, x, y, dtype=kind, computed=FP32, out=out, stream=stream)


def maximum(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The larger of two, NaN if either is."""
    return _of_numbers("maximum", tile.maximum, x, y, out=out, stream=stream)


def minimum(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The smaller of two, NaN if either is."""
    return _of_numbers("minimum", tile.minimum, x, y, out=out, stream=stream)


def clamp(
    x: Buffer,
    low: float | None = None,
    high: float | None = None,
    *,
    out: Buffer | None = None,
    stream: Stream | None = None,
) -> Buffer:
    """x, but ``low`` where it is below and ``high`` where it is above; NaN stays. One of the two may be left out."""
    if low is not None and high is not None:
        return _of_numbers("clamp", between, x, low, high, out=out, stream=stream)
    if low is not None:
        return _of_numbers("clamp", tile.maximum, x, low, out=out, stream=stream)
    if high is not None:
        return _of_numbers("clamp", tile.minimum, x, high, out=out, stream=stream)
    raise BadRequest("clamp without low and high; give at least one")


def neg(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """-x."""
    return _of_numbers("neg", _neg, x, out=out, stream=stream)


def abs(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The larger of x and -x."""
    return _of_numbers("abs", _abs, x, out=out, stream=stream)


def square(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x · x."""
    return _of_numbers("square", _square, x, out=out, stream=stream)


def sign(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """1 where x is above 0, -1 where it is below, else 0; of NaN 0."""
    return _of_numbers("sign", _sign, x, out=out, stream=stream)


def pow(x: Buffer, exponent: float, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x to a power that is a number.

    Whole exponents from -8 to 8 by products from the left, below 0 of 1 / x; 0.5 and -0.5 by a root; others as
    2^(exponent · log2(x)), so NaN for x below 0. Errors: n ulp for n factors, one more for each below 0; 1 ulp of
    roots; of others 2 + 2 · |exponent · log2(x)|.
    """
    if not isinstance(exponent, int | float):
        raise UnsupportedType(f"exponent is {type(exponent).__name__}; pow takes a number, and nn.power arrays")
    whole = float(exponent).is_integer() and -8 <= exponent <= 8
    if whole and exponent > 0:
        return _of_numbers("pow", _power, x, int(exponent), out=out, stream=stream)
    kind = promoted_float(x)
    function = _power if whole else {0.5: _sqrt, -0.5: _rsqrt}.get(exponent, _real_power)
    numbers = [int(exponent)] if whole else [] if function is not _real_power else [float(exponent)]
    return mapped("pow", function, x, *numbers, dtype=kind, computed=FP32, out=out, stream=stream)


def power(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x to the power of each element of y, as 2^(y · log2(x)), with the errors of ``pow``: of integers float32; NaN for
    x below 0; 1 where y is 0; of a number y as ``pow``.
    """
    if isinstance(y, int | float):
        return pow(x, y, out=out, stream=stream)
    kind = promoted_float(x, y)
    if isinstance(x, int | float):
        log = math.log2(x) if x > 0 else -math.inf if x == 0 else math.nan
        return mapped("power", _power_of_number, log, y, dtype=kind, computed=FP32, out=out, stream=stream)
    return mapped("power", _power_of, x, y, dtype=kind, computed=FP32, out=out, stream=stream)


def bitwise_and(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The bits that both have, of integers."""
    return _of_bits("bitwise_and", _bits_and, x, y, out=out, stream=stream)


def bitwise_or(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The bits that either has, of integers."""
    return _of_bits("bitwise_or", _bits_or, x, y, out=out, stream=stream)


def bitwise_xor(x: Operand, y: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The bits that just one has, of integers."""
    return _of_bits("bitwise_xor", _bits_xor, x, y, out=out, stream=stream)


def lerp(x: Buffer, y: Operand, weight: Operand, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """x + weight · (y - x): 2 ulp of the largest term."""
    return _of_numbers("lerp", _lerp, x, y, weight, out=out, stream=stream)


def addcmul(
    x: Buffer, a: Operand, b: Operand, *, value: float = 1, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """x + value · a · b: 2 ulp of the larger term."""
    return _of_numbers("addcmul", _addcmul, x, a, b, value, out=out, stream=stream)


def addcdiv(
    x: Buffer, a: Operand, b: Operand, *, value: float = 1, out: Buffer | None = None, stream: Stream | None = None
) -> Buffer:
    """x + value · a · (1 / b): 2.5 ulp of the larger term."""
    kind = promoted_float(x, a, b)
    return mapped("addcdiv", _addcdiv, x, a, b, value, dtype=kind, computed=FP32, out=out, stream=stream)


def _of_numbers(
    operator: str, function: Callable[..., Any], *operands: Operand, out: Buffer | None, stream: Stream | None
) -> Buffer:
    """``mapped``, of bools int8: 1 + 1 is no bool."""
    kind = promoted(operands)
    return mapped(operator, function, *operands, dtype=INT8 if kind == BOOL else kind, out=out, stream=stream)


def _of_bits(
    operator: str, function: Callable[..., Any], x: Operand, y: Operand, *, out: Buffer | None, stream: Stream | None
) -> Buffer:
    kind = promoted([x, y])
    if kind in (BF16, FP32):
        raise UnsupportedType(f"{operator} of {kind}; it takes integers and bools: use nn.cast")
    if kind == BOOL and any(type(operand) is int for operand in (x, y)):
        kind = INT8
    one, other = (y, x) if isinstance(x, int) else (x, y)
    return mapped(operator, function, one, other, dtype=kind, computed=INT32, out=out, stream=stream)


def _add_scaled(x: Any, y: Any, alpha: Any) -> Any:
    return x + y * alpha


def _neg(x: Any) -> Any:
    return -x


def _abs(x: Any) -> Any:
    return tile.maximum(x, -x)


def _square(x: Any) -> Any:
    return x * x


def _sign(x: Any) -> Any:
    return (x > 0) - (x < 0)


def _power(x: Any, exponent: float) -> Any:
    if exponent == 0:
        return tile.full(x.shape, 1, x.dtype)
    result = x = x if exponent > 0 else tile.reciprocal(x)
    for _ in [None] * (int(max(exponent, -exponent)) - 1):
        result = result * x
    return result


def _sqrt(x: Any) -> Any:
    return tile.sqrt(x)


def _rsqrt(x: Any) -> Any:
    return tile.rsqrt(x)


def _real_power(x: Any, exponent: float) -> Any:
    return tile.exp2(tile.log2(x) * exponent)


def _lerp(x: Any, y: Any, weight: Any) -> Any:
    return x + weight * (y - x)


def _addcmul(x: Any, a: Any, b: Any, value: Any) -> Any:
    return x + a * b * value


def _addcdiv(x: Any, a: Any, b: Any, value: Any) -> Any:
    return x + a * (1 / b) * value


def _power_of(x: Any, y: Any) -> Any:
    return tile.where(y == 0.0, 1.0, tile.exp2(tile.log2(x) * y))


def _power_of_number(log: float, y: Any) -> Any:
    return tile.where(y == 0.0, 1.0, tile.exp2(y * log))


def _bits_and(x: Any, y: Any) -> Any:
    return x & y


def _bits_or(x: Any, y: Any) -> Any:
    return x | y


def _bits_xor(x: Any, y: Any) -> Any:
    return x ^ y
