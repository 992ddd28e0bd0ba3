"""Functions of Inductor's ``triton_helpers`` as the device computes them: with its own maxima, which keep NaN, and its
own reductions, of one tensor each. A kernel that uses another one is refused by its name.
"""

# Triton reads annotations as types of its own.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.language.standard import (
    _argmax_combine_tie_break_left as larger_first,  # their TTIR is known to from_triton
)
from triton.language.standard import _argmin_combine_tie_break_left as smaller_first


def set_driver_to_gpu() -> None:
    """Nothing: kernels are launched without a driver of Triton."""


@triton.jit
def promote_to_tensor(x):
    """A number as a tensor of one element."""
    return x + tl.zeros((1,), tl.int1)


@triton.jit
def maximum(a, b):
    """The larger one; NaN if either is."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    """The smaller one; NaN if either is."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def max2(a, dim):
    """The largest along an axis."""
    return tl.reduce(a, dim, maximum)


@triton.jit
def min2(a, dim):
    """The smallest along an axis."""
    return tl.reduce(a, dim, minimum)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def any(a, dim):
    """Whether one is not 0 along an axis."""
    return tl.reduce(a, dim, _either)


@triton.jit
def max_with_index(value, index, dim):
    """The largest along an axis, and the first number of it."""
    return tl.reduce((value, index), dim, larger_first)


@triton.jit
def min_with_index(value, index, dim):
    """The smallest along an axis, and the first number of it."""
    return tl.reduce((value, index), dim, smaller_first)


@triton.jit
def welford_reduce(value, mean, m2, weight, first_iteration):
    """One more value for each mean: of none the mean is 0."""
    weight += 1
    delta = value - mean
    moved = mean + delta / weight
    return moved, m2 + delta * (value - moved), weight


@triton.jit
def welford(mean, m2, weight, dim):
    """The mean of means, and the sum of squares about it, in two sums."""
    total = tl.sum(weight, dim)
    whole = tl.sum(mean * weight, dim) / total
    away = mean - tl.expand_dims(whole, dim)
    return whole, tl.sum(m2 + away * away * weight, dim), total


@triton.jit
def div_floor_integer(a, b):
    """The quotient, rounded down: of what is not negative."""
    return a // b


def refused(name: str) -> Any:
    """What stands for a function that is not here."""
    raise AttributeError(f"triton_helpers.{name} of Inductor is no function of the device sley")


__getattr__ = refused
