import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.from_bf16 import from_bf16
from sley.hw.fp.to_bf16 import ToBF16
from sley.hw.testing.floats import feed, patterns, special
from sley.sim.golden import float32


class FromBF16(wiring.Component):
    LATENCY = 1

    def __init__(self) -> None:
        super().__init__({"i": In(16), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.eq(from_bf16(self.i))
        return m


ENDS = [
    sign | exponent | fraction
    for sign in (0, 1 << 15)
    for exponent in range(0, 1 << 15, 1 << 7)
    for fraction in (0, 1, 127)
]
"""Every exponent, with the ends of its fractions: subnormal numbers, infinities and NaNs among them."""


@pytest.mark.parametrize("numbers", [ENDS, pytest.param(range(1 << 16), marks=pytest.mark.slow)], ids=["ends", "every"])
def test_from_bf16_and_back(numbers):
    numbers = np.array(numbers, np.uint16)
    wide = float32.from_bf16(numbers)
    assert np.array_equal(feed(FromBF16(), numbers), wide)
    assert np.array_equal(feed(ToBF16(), wide), float32.to_bf16(wide))


def test_rounding():
    """Ties and their neighbours at every exponent, the largest fractions, and everything else."""
    rng = np.random.default_rng(1)
    exponents = np.arange(256).repeat(16)
    kept = np.where(rng.integers(0, 3, len(exponents)) == 0, 0x7F, rng.integers(0, 0x80, len(exponents)))
    ties = exponents << 23 | kept << 16 | 0x8000 + rng.integers(-1, 2, len(exponents))
    ties |= rng.integers(0, 2, len(exponents)) << 31
    numbers = np.concatenate([special(), ties.astype(np.uint32), patterns(rng, 6000)])
    got, expected = feed(ToBF16(), numbers), float32.to_bf16(numbers)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(hex(x[k]) for x in (numbers, got, expected)) for k in wrong[:5]]
