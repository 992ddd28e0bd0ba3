"""The golden functions of one operand: errors against float64, exact points, special values, monotony."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from sley.abi.functions.table import COARSE_BITS, FINE_BITS, FUNCTIONS, Function
from sley.sim.golden.float32 import NAN, SMALLEST_NORMAL, flush, is_nan, to_bits, to_float
from sley.sim.golden.functions import apply

Reals = NDArray[np.float64]
erfc = np.vectorize(math.erfc, otypes=[float])
EXACT: dict[Function, Callable[[Reals], Reals]] = {
    Function.EXP2: np.exp2,
    Function.LOG2: np.log2,
    Function.RECIPROCAL: lambda x: 1 / x,
    Function.RSQRT: lambda x: 1 / np.sqrt(x),
    Function.SQRT: np.sqrt,
    Function.TANH: np.tanh,
    Function.SIGMOID: lambda x: 1 / (1 + np.exp(-x)),
    Function.NORMAL_CDF: lambda x: erfc(-x / math.sqrt(2)) / 2,
    Function.FLOOR: np.floor,
    Function.ROUND: np.rint,
}
INF = math.inf
SPECIAL: dict[Function, list[tuple[float, float]]] = {
    Function.EXP2: [
        (0.0, 1),
        (-0.0, 1),
        (INF, INF),
        (-INF, 0.0),
        (128, INF),
        (127, 2.0**127),
        (-126, 2.0**-126),
        (-127, 0.0),
    ],
    Function.LOG2: [(0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, math.nan), (-1, math.nan), (1, 0.0)],
    Function.RECIPROCAL: [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (1, 1), (-2, -0.5), (2.0**127, 0.0)],
    Function.RSQRT: [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, math.nan), (-1, math.nan), (4, 0.5)],
    Function.SQRT: [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, math.nan), (-1, math.nan), (2.25, 1.5)],
    Function.TANH: [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (2.0**-126, 2.0**-126), (-1e-5, -1e-5)],
    Function.SIGMOID: [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0.0), (2.0**-126, 0.5), (-(2.0**-126), 0.5)],
    Function.NORMAL_CDF: [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0.0), (2.0**-126, 0.5), (-(2.0**-126), 0.5)],
    Function.FLOOR: [
        (0.0, 0.0),
        (-0.0, -0.0),
        (INF, INF),
        (-INF, -INF),
        (0.9, 0.0),
        (-0.1, -1),
        (2.5, 2),
        (-2.5, -3),
        (1e10, 1e10),
    ],
    Function.ROUND: [
        (0.0, 0.0),
        (-0.0, -0.0),
        (INF, INF),
        (-INF, -INF),
        (0.5, 0.0),
        (-0.5, -0.0),
        (1.5, 2),
        (2.5, 2),
        (-0.7, -1),
    ],
}


def operands(function: Function, count: int = 100_000) -> NDArray[np.uint32]:
    """Every bf16, all patterns, numbers of the size that most have, and numbers around 1."""
    rng = np.random.default_rng(int(function))
    near = 1 + rng.standard_normal(count) * 2.0 ** -rng.integers(0, 24, count)
    return np.concatenate(
        [
            np.arange(1 << 16, dtype=np.uint32) << np.uint32(16),
            rng.integers(0, 1 << 32, count, dtype=np.uint32),
            to_bits(rng.standard_normal(count) * 4),
            to_bits(near),
        ]
    )


def order(bits: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Integers in the order of the numbers; both zeros are one."""
    wide = bits.astype(np.int64)
    return np.where(wide >> 31, -(wide & 0x7FFFFFFF), wide)


@pytest.mark.parametrize("function", Function)
def test_error(function: Function) -> None:
    facts, x = FUNCTIONS[function], operands(function)
    with np.errstate(all="ignore"):
        operand = to_float(flush(x)).astype(np.float64)
        exact = EXACT[function](operand)
    got = apply(function, x)
    result = to_float(got).astype(np.float64)
    assert (is_nan(got) == np.isnan(exact)).all()
    assert (got[is_nan(got)] == NAN).all()
    usual = np.isfinite(operand) & np.isfinite(exact) & (np.abs(exact) >= 2.0**-126) & (np.abs(exact) < 2.0**127.9)
    error = np.abs(np.where(usual, result, 0) - np.where(usual, exact, 0))
    last_place = np.ldexp(1.0, np.frexp(np.where(usual, np.abs(exact), 1))[1] - 24)
    tail = usual & (operand <= (-INF if facts.error_from is None else facts.error_from))
    assert (error[tail] <= facts.tail_error).all()
    within = usual & ~tail
    assert (error[within] / last_place[within]).max() <= facts.error
    assert ((got & np.uint32(0x7FFFFFFF)) < SMALLEST_NORMAL)[np.isfinite(exact) & (np.abs(exact) < 2.0**-127)].all()


@pytest.mark.parametrize("function", Function)
def test_special_values(function: Function) -> None:
    x, expected = (to_bits(values) for values in zip(*SPECIAL[function], strict=True))
    got = apply(function, x)
    assert (got == np.where(is_nan(expected), NAN, expected)).all(), to_float(got)
    nans = np.array([0x7F800001, 0x7FC00000, 0xFFFFFFFF], np.uint32)
    assert (apply(function, nans) == NAN).all()
    subnormal = np.array([1, 0x007FFFFF, 0x80000001, 0x807FFFFF], np.uint32)
    assert (apply(function, subnormal) == apply(function, flush(subnormal))).all()


def test_exact_points() -> None:
    integers = np.arange(-126, 128)
    powers = np.ldexp(np.float32(1), integers)
    assert (to_float(apply(Function.EXP2, to_bits(integers))) == powers).all()
    assert (to_float(apply(Function.LOG2, to_bits(powers))) == integers).all()
    assert (to_float(apply(Function.RECIPROCAL, to_bits(powers[:-1]))) == 1 / powers[:-1]).all()
    squares, roots = np.ldexp(np.float32(1), 2 * integers[63:-64]), np.ldexp(np.float32(1), integers[63:-64])
    assert (to_float(apply(Function.SQRT, to_bits(squares))) == roots).all()
    assert (to_float(apply(Function.RSQRT, to_bits(squares))) == 1 / roots).all()


def test_perfect_squares() -> None:
    roots = np.arange(1, 4096, dtype=np.float32)
    assert (to_float(apply(Function.SQRT, to_bits(roots * roots))) == roots).all()


def test_tanh_is_odd_and_small_operands_stay() -> None:
    x = operands(Function.TANH)
    x = x[~is_nan(x)]
    assert (apply(Function.TANH, x ^ np.uint32(1 << 31)) == apply(Function.TANH, x) ^ np.uint32(1 << 31)).all()
    small = flush(x[np.abs(to_float(x)) < 2.0**-13])
    assert (apply(Function.TANH, small) == small).all()


@pytest.mark.parametrize("function", [function for function in Function if function < Function.FLOOR])
def test_monotone(function: Function) -> None:
    """Neighbours on either side of every border of segments, and of random numbers, of all sizes and both signs."""
    fraction_bits = 23
    finest = np.arange(1 << FINE_BITS, dtype=np.int64) << fraction_bits - FINE_BITS
    exponents = np.arange(90, 170, dtype=np.int64) << fraction_bits
    borders = (exponents[:, None] | finest).ravel()
    units = to_bits(np.arange(1, 16 << COARSE_BITS) / np.float32(1 << COARSE_BITS)).astype(np.int64)
    random = np.random.default_rng(int(function)).integers(80 << fraction_bits, 170 << fraction_bits, 3000)
    for sign in (0, 1 << 31):
        around = np.concatenate([borders[:: 4 if sign else 2], units, random])[:, None] + np.arange(-12, 13)
        x = (around | sign).astype(np.uint32)
        results = apply(function, x.ravel()).reshape(x.shape)
        usual = ~is_nan(results).any(axis=1)
        change = np.diff(order(results[usual]), axis=1) * (-1 if sign else 1) * FUNCTIONS[function].monotone
        assert (change >= 0).all(), to_float(x[usual][(change < 0).any(axis=1)][:3])
