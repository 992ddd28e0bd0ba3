import numpy as np
from fp_units import to_int32

from sley.hw.testing.floats import feed, patterns, special
from sley.sim.golden import float32


def test_every_bit():
    rng = np.random.default_rng(1)
    halves = float32.to_bits(np.arange(-600, 600) / 2)
    wide_halves = float32.to_bits(rng.integers(-(1 << 24), 1 << 24, 3000) / 2.0 ** rng.integers(1, 9, 3000))
    numbers = np.concatenate([special(), halves, wide_halves, patterns(rng, 6000, 122, 160), patterns(rng, 2000)])
    got, expected = feed(to_int32(), numbers), float32.to_int32(numbers).view(np.uint32)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(hex(x[k]) for x in (numbers, got, expected)) for k in wrong[:5]]
