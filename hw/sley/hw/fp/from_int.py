"""Conversion from integers to fp32."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.float32 import BIAS, FRACTION_BITS, SIGNIFICAND_BITS, normalise


class FromInt32(wiring.Component):
    """o = i as fp32, rounded to nearest even.

    Stages: 1 takes the magnitude; 2 and 3 normalise; 4 rounds and packs.

    Members
    -------
    i: an int32.
    o: the number of LATENCY cycles ago, as a bit pattern.

    Latency 4, one conversion per cycle. Cost: some 150 flip-flops, carry chains of 32 and 31 bits, a 32-bit shifter.
    """

    LATENCY = 4

    i: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"i": In(signed(32)), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sign = Signal(3, reset_less=True)
        m.d.sync += sign.eq(Cat(self.i[-1], sign))

        # 1: magnitude
        magnitude_1 = Signal(32, reset_less=True)
        m.d.sync += magnitude_1.eq(Mux(self.i < 0, -self.i, self.i))

        # 2, 3: normalise
        magnitude_2, magnitude_3 = Signal(32, reset_less=True), Signal(32, reset_less=True)
        exponent_2, exponent_3 = Signal(8, reset_less=True), Signal(8, reset_less=True)
        normal_2, eights = normalise(magnitude_1, (16, 8))
        normal_3, ones = normalise(magnitude_2, (4, 2, 1))
        m.d.sync += [
            magnitude_2.eq(normal_2),
            exponent_2.eq(BIAS + 31 - (eights << 3)),
            magnitude_3.eq(normal_3),
            exponent_3.eq(exponent_2 - ones),
        ]

        # 4: round and pack
        kept, rest = magnitude_3[-SIGNIFICAND_BITS:], magnitude_3[:-SIGNIFICAND_BITS]
        up = rest[-1] & (kept[0] | rest[:-1].any())
        packed = Cat(kept[:-1], exponent_3) + up
        m.d.sync += self.o.eq(Mux(kept[-1], Cat(packed[:31], sign[-1]), 0))
        return m


class FromInt8(wiring.Component):
    """o = i as fp32, which is exact.

    Members
    -------
    i: an int8.
    o: the number of LATENCY cycles ago, as a bit pattern.

    Latency 1, one conversion per cycle. Cost: 12 flip-flops, an 8-bit carry chain, an 8-bit shifter.
    """

    LATENCY = 1

    i: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"i": In(signed(8)), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sign = self.i[-1]
        magnitude, exponent = Signal(8), Signal(8)
        m.d.comb += magnitude.eq(Mux(sign, -self.i, self.i))
        normal, distance = normalise(magnitude, (4, 2, 1))
        with m.Switch(distance):  # a table of 3 bits is faster than a subtraction
            for places in range(8):
                with m.Case(places):
                    m.d.comb += exponent.eq(BIAS + 7 - places)
        # The leading one of ``normal`` is bit 7; its seven lower bits are the top of the fraction.
        number = Signal(16, reset_less=True)
        m.d.sync += number.eq(Mux(normal[-1], Cat(normal[:-1], exponent, sign), 0))
        m.d.comb += self.o.eq(number << (FRACTION_BITS - 7))
        return m
