import numpy as np
from amaranth.hdl import Const, Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from fp_units import converted_sum

from sley.hw.fp.from_int import from_int8
from sley.hw.testing.floats import feed
from sley.sim.golden import float32


class FromInt8(wiring.Component):
    LATENCY = 1

    def __init__(self) -> None:
        super().__init__({"i": In(signed(8)), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.eq(from_int8(m, "i", self.i, Const(1, 1)))
        return m


class FromByte(wiring.Component):
    """A uint8 if bit 8 is set, else an int8."""

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__({"i": In(9), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.eq(from_int8(m, "i", self.i[:8], Const(1, 1), self.i[8]))
        return m


def test_uint8_exhaustively():
    numbers = np.arange(512)
    values = np.concatenate([np.arange(256).astype(np.int8).astype(np.int32), np.arange(256)])
    assert np.array_equal(feed(FromByte(), numbers), float32.from_int32(values))


def test_int8_exhaustively():
    numbers = np.arange(-128, 128)
    assert np.array_equal(feed(FromInt8(), numbers), float32.from_int32(numbers))


def test_int32():
    rng = np.random.default_rng(1)
    powers = [s * ((1 << k) + d) for s in (1, -1) for k in range(31) for d in (-2, -1, 0, 1, 2)]
    random = rng.integers(-(1 << 31), 1 << 31, 6000) >> rng.integers(0, 32, 6000)
    significand, shift = rng.integers(1 << 23, 1 << 24, 6000), rng.integers(0, 8, 6000)
    ties = ((significand << shift) + (1 << shift >> 1) + rng.integers(-1, 2, 6000)) * rng.choice([-1, 1], 6000)
    numbers = np.concatenate([powers, random, ties, [2**31 - 1, -(2**31)]])
    numbers = np.clip(numbers, -(2**31), 2**31 - 1)
    addends = rng.integers(-(1 << 31), 1 << 31, len(numbers)) * rng.integers(0, 2, len(numbers))
    others = (numbers - addends).astype(np.int32).view(np.uint32)
    got, expected = feed(converted_sum(), addends.astype(np.int32).view(np.uint32), others), float32.from_int32(numbers)
    wrong = np.flatnonzero(got != expected)
    assert not len(wrong), [(int(numbers[k]), hex(got[k]), hex(expected[k])) for k in wrong[:5]]
