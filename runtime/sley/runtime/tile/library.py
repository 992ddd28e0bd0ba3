"""Functions of the tile language that are made of others."""

from __future__ import annotations

import math

from sley.abi.types import ElementType
from sley.runtime.tile.trace import Tile, computed, trace, unary, where

LAST = (1 << 31) - 1


def exp(x: Tile) -> Tile:
    """e^x, as 2^(x * log2(e)) in fp32."""
    return unary("exp2", computed(x) * math.log2(math.e))


def log(x: Tile) -> Tile:
    """The natural logarithm, as log2(x) * ln(2) in fp32."""
    return unary("log2", x) * math.log(2)


def silu(x: Tile) -> Tile:
    """x * sigmoid(x)."""
    return unary("sigmoid", x) * x


def gelu(x: Tile) -> Tile:
    """x * Phi(x)."""
    return unary("normal_cdf", x) * x


def any(x: Tile, axis: int) -> Tile:
    """1 where an element along an axis is not 0, as NaN is; else 0."""
    return (computed(x) != 0).max(axis)


def all(x: Tile, axis: int) -> Tile:
    """1 where no element along an axis is 0; else 0."""
    return (computed(x) != 0).min(axis)


def argmax(x: Tile, axis: int) -> Tile:
    """The number of the largest element along an axis, int32: of the first of equal ones, or of the first NaN."""
    return _first(x, "max", axis)


def argmin(x: Tile, axis: int) -> Tile:
    """The number of the smallest element along an axis, int32: of the first of equal ones, or of the first NaN."""
    return _first(x, "min", axis)


def _first(x: Tile, kind: str, axis: int) -> Tile:
    values = computed(x)
    found = values == values.reduced(kind, axis)
    if values.dtype is ElementType.FP32:
        found = found | (values != values)
    numbers = Tile(trace().emit("iota", [], axis=axis, shape=values.shape)[0])
    return where(found, numbers, LAST).min(axis)


def cumsum(x: Tile, axis: int) -> Tile:
    """Sums along an axis up to each element. For distances of 1, 2, 4, ...: to each element that many behind the first
    one, the sum so far of the one at this distance before it is added, all at a time."""
    if axis == 1:
        return cumsum(x.T, 0).T
    sums, distance = computed(x), 1
    while distance < sums.shape[0]:
        sums = Tile(trace().emit("join", [sums.value], kind="sum", distance=distance)[0])
        distance *= 2
    return sums
