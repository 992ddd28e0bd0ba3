"""Quotients of int32 elements, as functions of tiles: a divisor of 0 gives nothing that means something."""

from __future__ import annotations

from typing import Any

from sley.abi.types import ElementType
from sley.runtime.tile import language as tile


def whole_floor(x: Any, y: Any) -> Any:
    """The quotient of two int32, rounded down; of 0 as divisor nothing that means something."""
    quotient, rest = _whole(x, y)
    return quotient - _opposite(rest, y)


def whole_trunc(x: Any, y: Any) -> Any:
    """The quotient of two int32, towards 0."""
    quotient, rest = _whole(x, y)
    down = quotient - _opposite(rest, y)
    return down + (down < 0) * (down * y != x)


def _opposite(rest: Any, y: Any) -> Any:
    """1 where a remainder that is not 0 has another sign than the divisor."""
    return ((rest < 0) != (y < 0)) * (rest != 0)


def _whole(x: Any, y: Any) -> tuple[Any, Any]:
    """A quotient of int32 whose remainder is smaller than the divisor: approximated in fp32, each time of what is left,
    and then corrected by 1."""
    inverse = tile.reciprocal(y.to(ElementType.FP32))
    quotient: Any = None
    rest = x
    for _ in range(3):
        part = tile.floor(rest.to(ElementType.FP32) * inverse).to(ElementType.INT32)
        quotient = part if quotient is None else quotient + part
        rest = rest - part * y
    beyond = tile.where(y < 0, rest <= y, rest >= y)
    return quotient + beyond, rest - beyond * y
