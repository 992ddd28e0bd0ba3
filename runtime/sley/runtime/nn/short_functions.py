"""Functions of one element for results of bfloat16: as exact as that type asks for, in few instructions.

An operator whose result is bfloat16 takes the function here in place of that in ``functions``, if there is one; the
form depends on the type of the result alone. Operands are bfloat16, so 1 + x is exact where x counts in it. Everything
is computed in fp32 and rounded once; errors, the rounding included, are at most 0.51 units in the last place of
bfloat16, for each of its values from 2^-124 on, those of ``sin``, ``cos`` and ``tan`` up to 8192. Below 2^-124 results
may be 0 in place of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sley.runtime.tile import language as tile

_LOG2E = math.log2(math.e)
_LN2 = math.log(2)


def exp(x: Any) -> Any:
    """2^(x · log2(e)), of which the product is rounded: a relative error of 2^-17 at most."""
    return tile.exp2(x * _LOG2E)


def expm1(x: Any) -> Any:
    """tanh(x / 2) · (e^x + 1): nothing cancels."""
    half = tile.tanh(x * 0.5)
    return tile.exp2(x * _LOG2E) * half + half


def log1p(x: Any) -> Any:
    """log(1 + x), and what 1 + x has lost of an x up to 1."""
    small = tile.minimum(x, 1.0)
    lost = small - ((small + 1.0) + -1.0)
    return tile.log(x + 1.0) + lost


def cosh(x: Any) -> Any:
    """e^(x - ln(2)) + e^(-x - ln(2)), neither of which overflows before the sum does."""
    return tile.exp2((x - _LN2) * _LOG2E) + tile.exp2((x + _LN2) * -_LOG2E)


def sinh(x: Any) -> Any:
    """tanh(x) · cosh(x): nothing cancels."""
    return tile.tanh(x) * cosh(x)


def asinh(x: Any) -> Any:
    """log(|x|) + log(1 + sqrt(1 + 1 / x^2)) with the sign of x, which tanh brings; near 0 x - x^3 / 6."""
    square = x * x
    near = x * square * (-1 / 6) + x
    beside = tile.log(tile.sqrt(tile.reciprocal(square) + 1.0) + 1.0)
    size = tile.log(tile.maximum(x, -x)) + beside
    return tile.where(square > _NEAR, tile.tanh(x * _STEEP) * size, near)


_NEAR, _STEEP = 2.0**-8, 2.0**10
"""The square from which on the sum of logarithms is exact enough; a factor that makes 1 of tanh from there on."""


def acosh(x: Any) -> Any:
    """log(x) + log(1 + sqrt(1 - 1 / x^2))."""
    inverse = tile.reciprocal(x)
    return tile.log(x) + tile.log(tile.sqrt(1.0 - inverse * inverse) + 1.0)


def atanh(x: Any) -> Any:
    """log(1 + x) / 2 - log(1 - x) / 2; near 0 x, from which it differs by x^3 / 3."""
    far = tile.log2(x + 1.0) * (_LN2 / 2) - tile.log2(1.0 - x) * (_LN2 / 2)
    return tile.where(x * x > 2.0**-16, far, x)


_HALF_TURN = (3.140625, 9.67502593994140625e-4, 1.509957990978376432e-7)
"""Parts of pi: the first two with few enough bits that products with half turns up to 2^12 are exact."""
_SINE = (0.99999661, -0.16664831, 0.00830632, -0.00018363)
"""Of x, x^3, x^5 and x^7: sin(x) within [-pi / 2, pi / 2] with an error of 2^-20."""


def sin(x: Any) -> Any:
    """x minus the nearest multiple of pi, into a polynomial."""
    return _half_turned(x, tile.round(x * (1 / math.pi)), 0.0)


def cos(x: Any) -> Any:
    """As ``sin``, from the nearest odd multiple of pi / 2."""
    return _half_turned(x, tile.round((x - math.pi / 2) * (1 / math.pi)) + 0.5, 0.5)


def _half_turned(x: Any, turns: Any, ahead: float) -> Any:
    """sin(x) by a whole number of half turns, or cos(x) by half a turn more (``ahead`` 0.5)."""
    rest = x
    for part in _HALF_TURN:
        rest = rest - turns * part
    square = rest * rest
    value = _polynomial(square, _SINE)
    whole = turns + ahead
    odd = whole - tile.floor(whole * 0.5) * 2.0
    return value * ((odd - 0.5) * -2.0 * rest)


def tan(x: Any) -> Any:
    """Sine times 1 / cosine."""
    return tile.reciprocal(cos(x)) * sin(x)


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """The first coefficient is the constant one."""
    value = x * coefficients[-1] + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        value = value * x + coefficient
    return value


_ARC_COSINE = (1.5707874389678773, -0.2141108176665142, 0.08459657442638006, -0.03564343613254623, 0.00859180456488992)
"""Of acos(x) / sqrt(1 - x) within [0, 1], with a relative error of 2^-17."""
_ARC_SINE = (0.9999984906224612, 0.16685219415394345, 0.07148401061022282, 0.06506756803691326)
"""Of asin(x) / x by x^2, for |x| up to 0.5, with a relative error of 2^-19."""
_ARC_TANGENT = (
    0.999995629821001,
    -0.3329945996432062,
    0.19563593313864175,
    -0.12123907477312316,
    0.057477303916238114,
    -0.013480461354582609,
)
"""Of atan(x) / x by x^2, for |x| up to 1, with a relative error of 2^-17."""


def acos(x: Any) -> Any:
    """sqrt(1 - |x|) by a polynomial of |x|, and pi minus that below 0."""
    size = tile.maximum(x, -x)
    value = _polynomial(size, _ARC_COSINE) * tile.sqrt(1.0 - size)
    return tile.where(x < 0.0, math.pi - value, value)


def asin(x: Any) -> Any:
    """x by a polynomial of x^2 up to 0.5; above it pi / 2 minus the arc cosine, with the sign that tanh brings."""
    square, size = x * x, tile.maximum(x, -x)
    near = _polynomial(square, _ARC_SINE) * x
    far = math.pi / 2 - _polynomial(size, _ARC_COSINE) * tile.sqrt(1.0 - size)
    return tile.where(square <= 0.25, near, tile.tanh(x * _STEEP) * far)


def atan(x: Any) -> Any:
    """x by a polynomial of x^2 up to 1; above it pi / 2 with the sign of x, and the same of -1 / x."""
    inverse = tile.reciprocal(x)
    far = inverse * inverse <= 1.0
    rest = tile.where(far, -inverse, x)
    base = tile.tanh(tile.where(far, x, 0.0) * _STEEP) * (math.pi / 2)
    return _polynomial(rest * rest, _ARC_TANGENT) * rest + base


SHORT: dict[str, Callable[[Any], Any]] = {
    function.__name__: function
    for function in (exp, expm1, log1p, sinh, cosh, asinh, acosh, atanh, asin, acos, atan, sin, cos, tan)
}
"""By the names of operators."""
