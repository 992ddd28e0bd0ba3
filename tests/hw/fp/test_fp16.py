import numpy as np
import pytest
from amaranth.hdl import Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.from_fp16 import from_fp16
from sley.hw.fp.to_fp16 import ToFP16
from sley.hw.fp.to_int import ToInt32
from sley.hw.testing.floats import feed, patterns, special
from sley.sim.golden import float32


class FromFP16(wiring.Component):
    LATENCY = 1

    def __init__(self) -> None:
        super().__init__({"i": In(16), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.eq(from_fp16(m, "i", self.i))
        return m


class WholeToFP16(wiring.Component):
    """``ToFP16`` with what rounds for it."""

    LATENCY = ToFP16.LATENCY

    def __init__(self) -> None:
        super().__init__({"i": In(32), "o": Out(16)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.rounding = rounding = ToInt32(for_fp16=True)
        m.submodules.unit = unit = ToFP16()
        m.d.comb += [
            rounding.use.eq(Const(1, 1)),
            rounding.fp16.eq(Const(1, 1)),
            rounding.i.eq(self.i),
            unit.i.eq(self.i),
            unit.rounded.eq(rounding.o),
            self.o.eq(unit.o),
        ]
        return m


def compare(numbers: np.ndarray, got: np.ndarray, expected: np.ndarray) -> None:
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [tuple(hex(x[k]) for x in (numbers, got, expected)) for k in wrong[:5]]


ENDS = [
    sign | exponent | fraction
    for sign in (0, 1 << 15)
    for exponent in range(0, 1 << 15, 1 << 10)
    for fraction in (range(1 << 10) if exponent == 0 and not sign else (0, 1, 512, 1023))
]
"""Every subnormal number, and every exponent with the ends of its fractions: infinities and NaNs among them."""


@pytest.mark.parametrize("numbers", [ENDS, pytest.param(range(1 << 16), marks=pytest.mark.slow)], ids=["ends", "every"])
def test_from_fp16_and_back(numbers):
    numbers = np.array(numbers, np.uint16)
    wide = float32.from_fp16(numbers)
    compare(numbers, feed(FromFP16(), numbers), wide)
    compare(wide, feed(WholeToFP16(), wide), float32.to_fp16(wide))


def test_rounding():
    """Ties and their neighbours at every exponent of fp16, the largest fractions, and everything else."""
    rng = np.random.default_rng(1)
    exponents = np.arange(98, 146).repeat(60)
    lost = np.clip(126 - exponents, 13, 24)  # places below those that stay
    kept = np.where(rng.integers(0, 3, len(exponents)) == 0, 0x7FFFFF, rng.integers(0, 1 << 23, len(exponents)))
    ties = (kept >> lost << lost | 1 << lost - 1) + rng.integers(-1, 2, len(exponents)) & 0x7FFFFF
    ties |= exponents << 23 | rng.integers(0, 2, len(exponents)) << 31
    numbers = np.concatenate([special(), ties.astype(np.uint32), patterns(rng, 3000), patterns(rng, 4000, 98, 146)])
    compare(numbers, feed(WholeToFP16(), numbers), float32.to_fp16(numbers))
