"""Functions of one element, in fp32; parameters as those of ``arithmetic``.

The result has the type of x, of integers float32. Errors are those of float32 results against float64, in units in the
last place (ulp) if nothing else is said; bfloat16 adds half a unit of its own. exp2, log2, reciprocal, rsqrt and sqrt
are functions of the [vector unit](numerics.md#functions), whose errors are 1 ulp. Results below 2^-126 are 0. Where the
result is bfloat16 those that are long take a short form, with an error of at most 0.51 ulp of bfloat16, the rounding
included: see ``short_functions``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.nn.mapping import in_fp32, promoted_float
from sley.runtime.nn.short_functions import SHORT
from sley.runtime.tile import language as tile


def exp(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """e^x, as 2^n · 2^r, n the integer next to x · log2(e), and r made of x minus n · ln(2) in two parts: 1 ulp."""
    return _mapped("exp", x, out, stream)


def exp2(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """2^x: 1 ulp."""
    return _mapped("exp2", x, out, stream)


def expm1(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """e^x - 1, for x within [-0.25, 0.25] by its Taylor polynomial of degree 6: 3 ulp."""
    return _mapped("expm1", x, out, stream)


def log(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The natural logarithm, as log2(x) · ln(2) in fp32: 1.5 ulp."""
    return _mapped("log", x, out, stream)


def log2(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The logarithm to base 2: 1 ulp."""
    return _mapped("log2", x, out, stream)


def log10(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The logarithm to base 10, as log2(x) · log10(2) in fp32: 2.25 ulp."""
    return _mapped("log10", x, out, stream)


def log1p(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The natural logarithm of 1 + x, with 1 + x rounded and the error of that divided out: 3.5 ulp."""
    return _mapped("log1p", x, out, stream)


def reciprocal(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """1 / x: 1 ulp; 0 of x above 2^126."""
    return in_fp32("reciprocal", tile.reciprocal, x, out=out, stream=stream)


def sqrt(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The square root: 1 ulp."""
    return _mapped("sqrt", x, out, stream)


def rsqrt(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """1 / sqrt(x): 1 ulp."""
    return _mapped("rsqrt", x, out, stream)


def floor(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The largest integer that is not above x, exactly."""
    return _mapped("floor", x, out, stream)


def ceil(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The smallest integer that is not below x, exactly."""
    return _mapped("ceil", x, out, stream)


def round(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The nearest integer, of two the even one, exactly."""
    return in_fp32("round", tile.round, x, out=out, stream=stream)


def trunc(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The nearest integer towards 0, exactly."""
    return _mapped("trunc", x, out, stream)


def erf(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The error function, as 2 Φ(sqrt(2) · x) - 1: an absolute error of 2^-22."""
    return _mapped("erf", x, out, stream)


def erfc(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """1 - erf(x), as 2 Φ(-sqrt(2) · x): 2 ulp, and 2^-24 absolute."""
    return _mapped("erfc", x, out, stream)


def sinh(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The hyperbolic sine, (e^x - e^-x) / 2; for |x| below 0.25 by its Taylor polynomial of degree 7: 2.5
    ulp."""
    return _mapped("sinh", x, out, stream)


def cosh(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The hyperbolic cosine, (e^x + e^-x) / 2: 2 ulp."""
    return _mapped("cosh", x, out, stream)


def sin(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The sine. x minus the nearest multiple of pi / 2, whose three parts are taken off one after the other, goes into
    a polynomial: an absolute error of 2^-22 for |x| up to 8192; above it grows as |x| · 2^-36."""
    return _mapped("sin", x, out, stream)


def cos(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The cosine, as ``sin`` a quarter of a turn further."""
    return _mapped("cos", x, out, stream)


def _mapped(name: str, x: Buffer, out: Buffer | None, stream: Stream | None) -> Buffer:
    """The function of that name, in the form for the type of its result."""
    function = TILES[name]
    if promoted_float(x) == BF16:
        function = SHORT.get(name, function)
    return in_fp32(name, function, x, out=out, stream=stream)


_LN2 = (0.693359375, -2.12194440e-4)
"""ln(2) as a number of 10 bits, whose products with integers up to 2^14 are exact, and the rest."""


def tan(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The tangent, as sine times 1 / cosine: for |x| up to 8192 an error of 2^-21 · (1 + tan(x)^2)."""
    return _mapped("tan", x, out, stream)


def asinh(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The inverse of ``sinh``: with the sign of x, log(1 + a) of a = |x| + x^2 / (1 + sqrt(x^2 + 1)): 4
    ulp."""
    return _mapped("asinh", x, out, stream)


def acosh(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The inverse of ``cosh``: log(1 + a) of a = (x - 1) + sqrt(x - 1) · sqrt(x + 1); NaN below 1: 4 ulp."""
    return _mapped("acosh", x, out, stream)


def atanh(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The inverse of ``tanh``: with the sign of x, log(1 + a) / 2 of a = 2 · |x| / (1 - |x|): 5 ulp."""
    return _mapped("atanh", x, out, stream)


def asin(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The inverse of ``sin``: a polynomial of degree 4 in x^2 for |x| up to 0.5, above it of sqrt((1 - |x|) / 2); an
    absolute error of 2^-21; NaN beyond 1."""
    return _mapped("asin", x, out, stream)


def acos(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The inverse of ``cos``, of what ``asin`` is made of: an absolute error of 2^-20; NaN beyond 1."""
    return _mapped("acos", x, out, stream)


def atan(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The inverse of ``tan``: a polynomial of degree 4 in x^2, in [-tan(pi / 8), tan(pi / 8)], where (x - 1) / (x + 1)
    or -1 / x brings the rest; an absolute error of 2^-21."""
    return _mapped("atan", x, out, stream)


def exp_tile(x: Any) -> Any:
    """e^x, the error of whose argument does not grow with x."""
    x = tile.minimum(tile.maximum(x, -104.0), 89.0)
    whole = tile.round(x * math.log2(math.e))
    rest = ((x - whole * _LN2[0]) - whole * _LN2[1]) * math.log2(math.e)
    most = tile.minimum(whole, 127.0)
    return tile.exp2(rest + (whole - most)) * tile.exp2(most)


def expm1_tile(x: Any) -> Any:
    near = _polynomial(x, [1 / math.factorial(n + 1) for n in range(6)]) * x
    return tile.where(tile.maximum(x, -x) <= 0.25, near, exp_tile(x) - 1.0)


def _log10(x: Any) -> Any:
    return tile.log2(x) * math.log10(2)


def _log1p(x: Any) -> Any:
    whole = x + 1.0
    exact = whole == 1.0
    log = tile.log(whole)
    quotient = log * x * tile.reciprocal(tile.where(exact, 1.0, whole - 1.0))
    return tile.where(whole > 2.0**25, log, tile.where(exact, x, quotient))


def _ceil(x: Any) -> Any:
    return -tile.floor(-x)


def _trunc(x: Any) -> Any:
    """Of one sign each, with the other one's zero, so that -0 stays what it is."""
    return tile.floor(tile.relu(-x)) * -1.0 + tile.floor(tile.maximum(x, -0.0))


def _erf(x: Any) -> Any:
    return tile.normal_cdf(x * math.sqrt(2)) * 2.0 - 1.0


def _erfc(x: Any) -> Any:
    return tile.normal_cdf(x * -math.sqrt(2)) * 2.0


def _sinh(x: Any) -> Any:
    square = x * x
    near = _polynomial(square, [1 / math.factorial(2 * n + 1) for n in range(4)]) * x
    return tile.where(tile.maximum(x, -x) < 0.25, near, (exp_tile(x) - exp_tile(-x)) * 0.5)


def _cosh(x: Any) -> Any:
    return (exp_tile(x) + exp_tile(-x)) * 0.5


_QUARTER = (1.5703125, 4.837512969970703e-4, 7.549789948768648e-8)
"""Parts of pi / 2: the first two with few enough bits that products with quarter turns up to 2^13 are exact."""
_SINE = [(-1) ** n / math.factorial(2 * n + 1) for n in range(5)]
_COSINE = [(-1) ** n / math.factorial(2 * n) for n in range(6)]


def sin_tile(x: Any) -> Any:
    return _turned(x, 0.0)


def cos_tile(x: Any) -> Any:
    return _turned(x, 1.0)


def _turned(x: Any, ahead: float) -> Any:
    """sin(x + ahead · pi / 2)."""
    quarters = tile.round(x * (2 / math.pi))
    rest = x
    for part in _QUARTER:
        rest = rest - quarters * part
    square = rest * rest
    turn = quarters + ahead
    half = tile.floor(turn * 0.5)
    odd = turn - half * 2.0
    value = tile.where(odd, _polynomial(square, _COSINE), _polynomial(square, _SINE) * rest)
    return value * (1.0 - (half - tile.floor(half * 0.5) * 2.0) * 2.0)


def _polynomial(x: Any, coefficients: list[float]) -> Any:
    """The first coefficient is the constant one."""
    result = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        result = result * x + coefficient
    return result


def _tan(x: Any) -> Any:
    return tile.reciprocal(cos_tile(x)) * sin_tile(x)


_FAR = 2.0**30
"""From where on the square of a number plus 1 is the square."""


def _asinh(x: Any) -> Any:
    size = tile.maximum(x, -x)
    square = x * x
    over = tile.reciprocal(tile.sqrt(square + 1.0) + 1.0) * square + size
    value = _log1p(tile.where(size > _FAR, size, over)) + (size > _FAR) * math.log(2)
    return tile.where(x < 0.0, -value, value)


def _acosh(x: Any) -> Any:
    over = x - 1.0
    over = tile.sqrt(over) * tile.sqrt(x + 1.0) + over
    return _log1p(tile.where(x > _FAR, x, over)) + (x > _FAR) * math.log(2)


def _atanh(x: Any) -> Any:
    size = tile.minimum(tile.maximum(x, -x), 2.0)  # above 1 it is NaN
    value = _log1p(tile.reciprocal(1.0 - size) * size * 2.0) * 0.5
    return tile.where(x < 0.0, -value, value)


_ARC_SINE = [1.0, 1.6666752422e-1, 7.4953002686e-2, 4.5470025998e-2, 2.4181311049e-2, 4.2163199048e-2]
_ARC_TANGENT = [1.0, -3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1, 8.05374449538e-2]


def _arc(size: Any) -> tuple[Any, Any]:
    """Whether |x| is above 0.5; asin of |x|, or there of sqrt((1 - |x|) / 2), which is half of acos(|x|)."""
    far = size > 0.5
    square = tile.where(far, (1.0 - size) * 0.5, size * size)
    return far, _polynomial(square, _ARC_SINE) * tile.where(far, tile.sqrt(square), size)


def _asin(x: Any) -> Any:
    far, arc = _arc(tile.maximum(x, -x))
    value = tile.where(far, math.pi / 2 - arc * 2.0, arc)
    return tile.where(x < 0.0, -value, value)


def _acos(x: Any) -> Any:
    far, arc = _arc(tile.maximum(x, -x))
    below = x < 0.0
    near = math.pi / 2 - tile.where(below, -arc, arc)
    return tile.where(far, tile.where(below, math.pi - arc * 2.0, arc * 2.0), near)


def atan_tile(x: Any) -> Any:
    size = tile.maximum(x, -x)
    far, middle = size > math.tan(3 * math.pi / 8), size > math.tan(math.pi / 8)
    above = tile.where(far, -1.0, tile.where(middle, size - 1.0, size))
    below = tile.where(far, size, tile.where(middle, size + 1.0, 1.0))
    rest = tile.reciprocal(below) * above
    base = tile.where(far, math.pi / 2, tile.where(middle, math.pi / 4, 0.0))
    value = _polynomial(rest * rest, _ARC_TANGENT) * rest + base
    return tile.where(x < 0.0, -value, value)


def power_tile(x: Any, y: Any) -> Any:
    """|x|^y, negative for odd y of negative x, NaN there for y that is no integer."""
    if isinstance(x, int | float):
        return tile.exp2(y * math.log2(x))
    size = tile.maximum(x, -x)
    value = tile.exp2(tile.log2(size) * y)
    if isinstance(y, int | float):
        if y != math.floor(y):
            return tile.where(x < 0.0, math.nan, value)
        return tile.where(x < 0.0, -value, value) if y % 2 else value
    half = y * 0.5
    odd = half != tile.floor(half)
    below = tile.where(y == tile.floor(y), tile.where(odd, -value, value), math.nan)
    signed = tile.where(x < 0.0, below, value)
    return tile.where(y == 0.0, 1.0, tile.where(x == 1.0, 1.0, signed))


TILES: dict[str, Callable[[Any], Any]] = {
    "exp": exp_tile,
    "exp2": tile.exp2,
    "expm1": expm1_tile,
    "log": tile.log,
    "log2": tile.log2,
    "log10": _log10,
    "log1p": _log1p,
    "sqrt": tile.sqrt,
    "rsqrt": tile.rsqrt,
    "floor": tile.floor,
    "ceil": _ceil,
    "trunc": _trunc,
    "erf": _erf,
    "erfc": _erfc,
    "sin": sin_tile,
    "cos": cos_tile,
    "tan": _tan,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": tile.tanh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": _atanh,
    "asin": _asin,
    "acos": _acos,
    "atan": atan_tile,
}
"""The functions of tiles that they are made of, by name."""
