import numpy as np
import pytest
from fp_units import FP32_SUMS, INTEGER_SUMS, UNUSED, Operation

from sley.hw.testing.floats import feed, pairs, patterns
from sley.sim.golden import float32


@pytest.mark.parametrize("unit", FP32_SUMS)
def test_every_bit(unit):
    a, b = pairs(np.random.default_rng(1), 2000)
    got, expected = feed(FP32_SUMS[unit](), a, b), float32.add(a, b)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{x[k]:#010x}" for x in (a, b, got, expected)) for k in wrong[:5]]


@pytest.mark.parametrize("unit", INTEGER_SUMS)
def test_integers(unit):
    a, b = pairs(np.random.default_rng(5), 300)
    assert np.array_equal(feed(INTEGER_SUMS[unit](), a, b), a + b)


@pytest.mark.parametrize("result", UNUSED)
def test_what_is_not_asked_for_is_zero(result):
    """Results are merged by OR, so that the others must not be in the way."""
    unit, output, settings = UNUSED[result]
    inputs = "i" if result == "conversion" else "ab"
    operands = [patterns(np.random.default_rng(seed), 200) for seed in range(len(inputs))]
    assert not feed(Operation(unit(), 8, output, inputs, **settings), *operands).any()
