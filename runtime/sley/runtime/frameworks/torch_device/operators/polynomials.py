"""Orthogonal polynomials of a degree for each element: their recurrences, R(k + 1) = (a x + b) R(k) - c R(k - 1).

The degree is cut to an integer; of a negative one the polynomial is 0. The largest one is read back, as it says how
many steps there are, one kernel each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sley.runtime.errors import UnsupportedType
from sley.runtime.frameworks.torch_device.pointwise import float_type, pointwise
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import on_device
from sley.runtime.tile import language as tile

DEGREES = 512
"""The largest degree that is computed."""
Factors = Callable[[int], tuple[float, float, float]]


def _chebyshev(_: int) -> tuple[float, float, float]:
    return 2.0, 0.0, 1.0


FAMILIES: dict[str, tuple[tuple[float, float], Factors]] = {
    "special_chebyshev_polynomial_t": ((1.0, 0.0), _chebyshev),
    "special_chebyshev_polynomial_u": ((2.0, 0.0), _chebyshev),
    "special_chebyshev_polynomial_v": ((2.0, -1.0), _chebyshev),
    "special_chebyshev_polynomial_w": ((2.0, 1.0), _chebyshev),
    "special_hermite_polynomial_h": ((2.0, 0.0), lambda k: (2.0, 0.0, 2.0 * k)),
    "special_hermite_polynomial_he": ((1.0, 0.0), lambda k: (1.0, 0.0, float(k))),
    "special_laguerre_polynomial_l": ((-1.0, 1.0), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    "special_legendre_polynomial_p": ((1.0, 0.0), lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1))),
}
"""By operator: a and b of the polynomial of degree 1, a x + b; and a, b, c of the step from k to k + 1."""


def polynomial(x: Any, n: Any, first: tuple[float, float], factors: Factors) -> Tensor:
    """The polynomial of degree n at x, broadcast together. Raises ``UnsupportedType`` for one above ``DEGREES``."""
    dtype = float_type(x, n)
    place = (x if on_device(x) else n).device
    x, n = (torch.as_tensor(value, dtype=dtype, device=place) for value in (x, n))
    top = float(n.max()) if n.numel() else 0.0
    if not top <= DEGREES:
        raise UnsupportedType(f"a polynomial of degree {top}; the device sley computes degrees up to {DEGREES}")
    result = pointwise(_begun, x, n, *first, dtype=dtype, computed=torch.float32)
    below, last = 1.0, pointwise(_line, x, *first, dtype=torch.float32)
    for k in range(1, int(top)):
        below, last = last, pointwise(_step, x, last, below, *factors(k), dtype=torch.float32)
        result = pointwise(_chosen, n, last, result, float(k + 1), dtype=dtype, computed=torch.float32)
    return result


def _register(name: str, first: tuple[float, float], factors: Factors) -> None:
    @operator(name)
    def run(x: Any, n: Any) -> Tensor:
        return polynomial(x, n, first, factors)

    if "chebyshev" in name:

        @operator(name.replace("special_", "special_shifted_"))
        def shifted(x: Any, n: Any) -> Tensor:
            """Of 2x - 1: exact where it is near 0, which is a multiply-add."""
            return polynomial(x * 2 - 1, n, first, factors)


for _name, (_first, _factors) in FAMILIES.items():
    _register(_name, _first, _factors)


def _line(x: Any, a: Any, b: Any) -> Any:
    return x * a + b


def _begun(x: Any, n: Any, a: Any, b: Any) -> Any:
    """Of degrees 0 and 1; 0 elsewhere."""
    return tile.where((n > -1.0) * (n < 1.0), 1.0, tile.where((n >= 1.0) * (n < 2.0), x * a + b, 0.0))


def _step(x: Any, last: Any, below: Any, a: Any, b: Any, c: Any) -> Any:
    return (x * a + b) * last - below * c


def _chosen(n: Any, found: Any, before: Any, degree: Any) -> Any:
    return tile.where((n >= degree) * (n < degree + 1.0), found, before)
