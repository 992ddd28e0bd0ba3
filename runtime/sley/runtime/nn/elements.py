"""Functions of tiles that several operators share; those of statistics ignore what is known already."""

from __future__ import annotations

from typing import Any

from sley.runtime.tile import language as tile

COUNTED = 1 << 24
"""Integers that fp32 counts: up to here each of them is a number of its own."""


def same(x: Any) -> Any:
    return x


def plus(x: Any, y: Any) -> Any:
    return x + y


def minus(x: Any, y: Any) -> Any:
    return x - y


def times(x: Any, y: Any) -> Any:
    return x * y


def times_both(x: Any, y: Any, z: Any) -> Any:
    return x * y * z


def over(x: Any, y: Any) -> Any:
    """x times 1 / y."""
    return x * (1 / y)


def between(x: Any, low: Any, high: Any) -> Any:
    return tile.minimum(tile.maximum(x, low), high)


def equal(x: Any, y: Any) -> Any:
    return x == y


def unequal(x: Any, y: Any) -> Any:
    return x != y


def less(x: Any, y: Any) -> Any:
    return x < y


def less_equal(x: Any, y: Any) -> Any:
    return x <= y


def greater(x: Any, y: Any) -> Any:
    return x > y


def greater_equal(x: Any, y: Any) -> Any:
    return x >= y


def squared_distance(x: Any, y: Any) -> Any:
    return (x - y) * (x - y)


def first(x: Any, *rest: Any) -> Any:
    return x


def first_squared(x: Any, *rest: Any) -> Any:
    return x * x
