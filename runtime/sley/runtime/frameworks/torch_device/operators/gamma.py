"""Derivatives of the logarithm of the gamma function, from the second on.

They are zeta functions of Hurwitz, sums of (x + k)^-s: an asymptotic series at an argument of at least 7, that is
reached by the recurrence of the function; below 0 a reflection.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.pointwise import float_type, pointwise
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.tile import language as tile

ZETA_TERMS = 7
"""Terms of a zeta function that are added one by one, before the series."""


@operator("polygamma")
def polygamma(n: int, self: Tensor) -> Tensor:
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n: {n}")
    if n == 0:
        return torch.digamma(self)

    x, place = self.to(torch.float32), float_type(self)

    def above(y: Any) -> Any:
        return _zeta_above(n + 1, y)

    above.__name__ = f"zeta{n + 1}"

    def zeta(part: Tensor) -> Tensor:
        return pointwise(above, part, dtype=torch.float32)

    first = zeta(pointwise(_first_term, x, dtype=torch.float32))
    low, high = (zeta(pointwise(part, x, dtype=torch.float32)) for part in (_last_below, _beyond))
    sign, scale = (-1.0) ** (n + 1), (-1.0) ** (n + 1) * math.factorial(n)
    return pointwise(_joined, x, first, low, high, sign, scale, dtype=place, computed=torch.float32)


def _first_term(x: Any) -> Any:
    """The least x + k above 0."""
    return tile.where(x > 0.0, x, x - tile.floor(x))


def _last_below(x: Any) -> Any:
    """The size of the largest x + k below 0, exactly; 1 where there is none."""
    return tile.where(x > 0.0, 1.0, -x - tile.floor(-x))


def _beyond(x: Any) -> Any:
    """Behind the size of x itself, where the terms below 0 end; 1 where there are none."""
    return tile.where(x > 0.0, 1.0, 1.0 - x)


def _joined(x: Any, first: Any, low: Any, high: Any, sign: Any, scale: Any) -> Any:
    """The sum of (x + k)^-s over all k, those below 0 among them, times a scale."""
    pole = (x <= 0.0) * (x == tile.floor(x))
    return tile.where(pole, math.inf, first + tile.where(x > 0.0, 0.0, (low - high) * sign)) * scale


def _zeta_above(s: int, x: Any) -> Any:
    """Of x above 0, by the formula of Euler and Maclaurin."""
    total = _power(tile.reciprocal(x), s)
    for k in range(1, ZETA_TERMS):
        total = total + _power(tile.reciprocal(x + float(k)), s)
    z = x + float(ZETA_TERMS)
    inverse = tile.reciprocal(z)
    square = inverse * inverse
    first, second, third = s / 12, -s * (s + 1) * (s + 2) / 720, math.prod(range(s, s + 5)) / 30240
    tail = ((square * third + second) * square + first) * inverse
    return total + _power(inverse, s - 1) * (1 / (s - 1)) + _power(inverse, s) * (tail + 0.5)


def _power(x: Any, count: int) -> Any:
    found = x
    for _ in range(count - 1):
        found = found * x
    return found
