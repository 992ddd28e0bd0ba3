from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from fp_units import Operation, multiply, multiply_beside_int32, multiply_int32
from numpy.typing import NDArray

from sley.hw.fp.multiply import Multiply
from sley.hw.testing.floats import feed, pairs
from sley.sim.golden import float32, operations

Words = NDArray[np.uint32]


def check(unit: Operation, a: Words, b: Words, expected: Words) -> None:
    got = feed(unit, a, b)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{x[k]:#010x}" for x in (a, b, got, expected)) for k in wrong[:5]]


@pytest.mark.parametrize("unit", [multiply, multiply_beside_int32])
def test_every_bit(unit: Callable[[], Operation]) -> None:
    a, b = pairs(np.random.default_rng(2), 2000)
    check(unit(), a, b, float32.multiply(a, b))


def test_int32() -> None:
    """Random words, all pairs of extremes, and of single bits: each bit of one at each place of the other."""
    bits = [1 << bit for bit in range(32)]
    extremes = [0, 3, 0x7FFFFFFF, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFF, 0x10001, 0xFFFFFF, 0xFF000000, 0x7FC00000]
    a, b = np.array(list(product([*extremes, *bits], repeat=2)), np.uint32).T
    more = np.random.default_rng(3).integers(0, 1 << 32, (2, 2000), np.uint32)
    a, b = np.ascontiguousarray(np.concatenate([[a, b], more], 1))
    exact = a.astype(object) * b.astype(object) % (1 << 32)
    assert (operations.multiply_int32(a, b) == exact).all()
    check(multiply_int32(), a, b, operations.multiply_int32(a, b))


@pytest.mark.parametrize(("integer", "output"), [(1, "o"), (1, "nan"), (0, "low")])
def test_the_other_product_is_0(integer: int, output: str) -> None:
    """Where one of the two leaves, the other is 0: they are joined by OR."""
    a, b = pairs(np.random.default_rng(4), 300)
    unit = Operation(Multiply(integer=True), Multiply.LATENCY, output=output, use=1 - integer, integer=integer)
    check(unit, a, b, np.zeros_like(a))
