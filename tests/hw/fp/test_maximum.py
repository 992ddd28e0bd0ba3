import numpy as np
from fp_units import maximum

from sley.hw.testing.floats import feed, pairs
from sley.sim.golden import float32


def test_every_bit():
    a, b = pairs(np.random.default_rng(3), 700)
    got, expected = feed(maximum(), a, b), float32.maximum(a, b)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{x[k]:#010x}" for x in (a, b, got, expected)) for k in wrong[:5]]


def test_integers():
    a, b = pairs(np.random.default_rng(4), 300)
    got = feed(maximum(is_float=0), a, b)
    assert np.array_equal(got.view(np.int32), np.maximum(a.view(np.int32), b.view(np.int32)))
