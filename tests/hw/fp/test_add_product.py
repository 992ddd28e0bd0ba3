import numpy as np
from fp_units import SumWithProduct, product_of

from sley.hw.testing.floats import feed, pairs, patterns
from sley.sim.golden import float32


def product_pairs(rng, count):
    """Sums and products: those that are hard for a sum, products that nearly cancel it, and products above a sum of the
    same exponent, whose difference has one place too many."""
    a, b = pairs(rng, count)
    one = patterns(rng, count, 1, 253) & np.uint32(0xFFBFFFFF)
    above = (one ^ np.uint32(1 << 31)) + np.uint32(1 << 23) | np.uint32(1 << 22)
    a, b = np.concatenate([a, one]), np.concatenate([b, above])
    near = (a ^ np.uint32(1 << 31)) + (rng.integers(-3, 4, len(a)) << rng.integers(8, 25, len(a))).astype(np.uint32)
    a, b = np.concatenate([a, a]), np.concatenate([b, near])
    return a, b & np.uint32(0xFFFFFF00) | rng.integers(0, 2, len(b)).astype(np.uint32)


def test_every_bit():
    a, b = product_pairs(np.random.default_rng(1), 700)
    got, expected = feed(SumWithProduct(), a, b), float32.add(a, product_of(b))
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(f"{x[k]:#010x}" for x in (a, b, got, expected)) for k in wrong[:5]]


def test_a_difference_that_rounding_makes_the_smallest_normal_number():
    """Before that it is 1.11...1, an exponent below."""
    a = np.array([0x0C3FFEFF, 0x8C3FFEFF, 0x0C3FFEFE, 0x0B3FFE00], np.uint32)
    b = np.array([0x8C3FFF01, 0x0C3FFF01, 0x8C3FFF01, 0x8B3FFF01], np.uint32)
    got = feed(SumWithProduct(), a, b)
    assert got.tolist() == float32.add(a, product_of(b)).tolist()
    assert got.tolist()[:2] == [0x80800000, 0x00800000]
