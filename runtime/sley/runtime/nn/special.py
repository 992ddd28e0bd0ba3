"""Special functions of one element, in fp32: of the gamma function, and the inverse of the error function.

Types of results, and errors, are as in ``functions``; there is one form for all types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.nn.functions import cos_tile, sin_tile
from sley.runtime.nn.mapping import in_fp32
from sley.runtime.tile import language as tile


def lgamma(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """log(abs(Γ(x))), by Stirling's series from 4 on, where the recurrence of Γ leads from below; under 0.5 by the
    reflection: 12 ulp of 1 + |x| + |lgamma(x)|."""
    return in_fp32("lgamma", _lgamma, x, out=out, stream=stream)


def digamma(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The derivative of ``lgamma``, in the same way; -inf at 0, NaN at its poles below: 6 ulp of
    1 + |x| + |digamma(x)|."""
    return in_fp32("digamma", _digamma, x, out=out, stream=stream)


def erfinv(x: Buffer, *, out: Buffer | None = None, stream: Stream | None = None) -> Buffer:
    """The inverse of ``erf``: x times a polynomial of degree 8, of w = -log((1 - x)(1 + x)) up to 5, of sqrt(w) above;
    infinite at 1, NaN beyond: 4 ulp."""
    return in_fp32("erfinv", _erfinv, x, out=out, stream=stream)


_POLES = -(2.0**23)
"""From where on down all numbers of fp32 are whole ones."""


def _lgamma(x: Any) -> Any:
    below = x < 0.5
    y = tile.where(below, 1.0 - x, x)
    small = y < 4.0
    z = tile.where(small, y + 4.0, y)
    product = tile.where(small, y * (y + 1.0) * (y + 2.0) * (y + 3.0), 1.0)
    inverse = tile.reciprocal(z)
    square = inverse * inverse
    series = (((square * (-1 / 1680) + 1 / 1260) * square - 1 / 360) * square + 1 / 12) * inverse
    found = (z - 0.5) * tile.log(z) - z + (series + 0.5 * math.log(2 * math.pi)) - tile.log(product)
    found = tile.where(z == math.inf, math.inf, found)
    sine = sin_tile(_rest(x) * math.pi)
    mirrored = -tile.log(tile.maximum(sine, -sine) * (1 / math.pi)) - found
    return tile.where(x <= _POLES, math.inf, tile.where(below, mirrored, found))


def _digamma(x: Any) -> Any:
    below = x < 0.5
    y = tile.where(below, 1.0 - x, x)
    small = y < 4.0
    z = tile.where(small, y + 4.0, y)
    terms = tile.reciprocal(y) + tile.reciprocal(y + 1.0) + tile.reciprocal(y + 2.0) + tile.reciprocal(y + 3.0)
    inverse = tile.reciprocal(z)
    square = inverse * inverse
    series = (((square * (1 / 240) - 1 / 252) * square + 1 / 120) * square - 1 / 12) * square
    found = tile.log(z) - inverse * 0.5 + series - tile.where(small, terms, 0.0)
    rest = _rest(x)
    turned = rest * math.pi
    mirrored = found - cos_tile(turned) * tile.reciprocal(sin_tile(turned)) * math.pi
    mirrored = tile.where((rest == 0.0) * (x < 0.0), math.nan, mirrored)
    return tile.where(below, mirrored, found)


def _rest(x: Any) -> Any:
    """What is left of a number behind the next whole one, exactly."""
    return x - tile.round(x)


_ERFINV = (
    (-0.000200214257, 2.81022636e-08),
    (0.000100950558, 3.43273939e-07),
    (0.00134934322, -3.5233877e-06),
    (-0.00367342844, -4.39150654e-06),
    (0.00573950773, 0.00021858087),
    (-0.0076224613, -0.00125372503),
    (0.00943887047, -0.00417768164),
    (1.00167406, 0.246640727),
    (2.83297682, 1.50140941),
)
"""Coefficients for w from 5 on, and below; the constant ones last (M. Giles, Approximating the erfinv function)."""


def _erfinv(x: Any) -> Any:
    w = -tile.log((1.0 - x) * (x + 1.0))
    far = w >= 5.0
    y = tile.where(far, tile.sqrt(w) - 3.0, w - 2.5)
    value = tile.where(far, *_ERFINV[0])
    for both in _ERFINV[1:]:
        value = value * y + tile.where(far, *both)
    return tile.where(w == math.inf, x * math.inf, value * x)


SPECIAL: dict[str, Callable[[Any], Any]] = {"lgamma": _lgamma, "digamma": _digamma, "erfinv": _erfinv}
"""The functions of tiles that they are made of, by name."""
