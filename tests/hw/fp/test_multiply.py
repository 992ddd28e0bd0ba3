import numpy as np
from fp_units import multiply

from sley.hw.testing.floats import feed, pairs
from sley.sim.golden import float32


def test_every_bit():
    a, b = pairs(np.random.default_rng(2), 2000)
    got, expected = feed(multiply(), a, b), float32.multiply(a, b)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{x[k]:#010x}" for x in (a, b, got, expected)) for k in wrong[:5]]
