"""fp32 addition."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.float32 import INFINITY, NAN, SIGNIFICAND_BITS, Float32, normalise

GUARD_BITS = 3
SUM_BITS = 1 + SIGNIFICAND_BITS + GUARD_BITS
"""A sum: the carry, a significand, and the guard, round and sticky bits."""

_OTHER = data.StructLayout({"sign": 1, "zero_sign": 1, "infinity": 1, "nan": 1})
"""What travels beside the significands: the sign of the sum and of an exact zero, and the special results."""


class Add(wiring.Component):
    """o = a + b, rounded to nearest even.

    Stages: 1 orders the operands by magnitude; 2 aligns the smaller one, where guard, round and sticky bit catch what
    it loses; 3 adds or subtracts; 4 and 5 normalise; 6 rounds and packs. A sum below the smallest normal number is a
    multiple of the smallest subnormal one, hence exact, and becomes zero of its sign. A sum that is exactly zero is
    negative only if both operands are.

    Members
    -------
    a, b: the operands, as bit patterns.
    o: the sum of the operands of LATENCY cycles ago.

    Latency 6, one sum per cycle. Cost: some 270 flip-flops, carry chains of 31, 28 and 31 bits, two 28-bit shifters.
    """

    LATENCY = 6

    a: Signal
    b: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(32), "b": In(32), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = Float32(self.a), Float32(self.b)
        other = [Signal(_OTHER, name=f"other_{stage}", reset_less=True) for stage in range(1, 6)]
        m.d.sync += [after.eq(before) for before, after in pairwise(other)]

        # 1: order
        swap = Signal()
        larger, smaller = (Float32(Mux(swap, *pair)) for pair in ((self.b, self.a), (self.a, self.b)))
        larger_1 = Signal(SIGNIFICAND_BITS, reset_less=True)
        smaller_1 = Signal(SIGNIFICAND_BITS, reset_less=True)
        distance_1, exponent_1 = Signal(8, reset_less=True), Signal(8, reset_less=True)
        subtract_1 = Signal(reset_less=True)
        opposite = a.sign ^ b.sign
        m.d.comb += swap.eq(self.b[:31] > self.a[:31])
        m.d.sync += [
            larger_1.eq(larger.significand()),
            smaller_1.eq(smaller.significand()),
            distance_1.eq(Mux(swap, b.exponent - a.exponent, a.exponent - b.exponent)),
            exponent_1.eq(larger.exponent),
            subtract_1.eq(opposite),
            other[0].sign.eq(larger.sign),
            other[0].zero_sign.eq(a.sign & b.sign),
            other[0].infinity.eq(larger.exponent.all()),
            other[0].nan.eq(a.is_nan() | b.is_nan() | (a.is_infinity() & b.is_infinity() & opposite)),
        ]

        # 2: align; an operand that is 32 places or more below the other cannot change the rounded sum
        aligned: Value = Cat(Const(0, GUARD_BITS - 1), smaller_1)
        sticky: Value = Const(0, 1)
        for step in range(5):
            sticky = sticky | (distance_1[step] & aligned[: 1 << step].any())
            aligned = Mux(distance_1[step], aligned >> (1 << step), aligned)[: SUM_BITS - 2]
        larger_2 = Signal(SIGNIFICAND_BITS, reset_less=True)
        aligned_2 = Signal(SUM_BITS - 1, reset_less=True)
        subtract_2, exponent_2 = Signal(reset_less=True), Signal(8, reset_less=True)
        m.d.sync += [
            larger_2.eq(larger_1),
            aligned_2.eq(Mux(distance_1[5:].any(), 0, Cat(sticky, aligned))),
            subtract_2.eq(subtract_1),
            exponent_2.eq(exponent_1),
        ]

        # 3: add; the extra bit below is the carry in
        sum_3, exponent_3 = Signal(SUM_BITS, reset_less=True), Signal(8, reset_less=True)
        first = Cat(1, Const(0, GUARD_BITS), larger_2)
        second = Cat(aligned_2, Const(0, 1)) ^ subtract_2.replicate(SUM_BITS)
        m.d.sync += [
            sum_3.eq((first + Cat(subtract_2, second))[1:]),
            exponent_3.eq(exponent_2),
        ]

        # 4, 5: normalise; the leading one moves to the carry's place
        sum_4, sum_5 = Signal(SUM_BITS, reset_less=True), Signal(SUM_BITS, reset_less=True)
        exponent_4, exponent_5 = Signal(range(-32, 256), reset_less=True), Signal(range(-32, 256), reset_less=True)
        normal_4, eights = normalise(sum_3, (16, 8))
        normal_5, ones = normalise(sum_4, (4, 2, 1))
        m.d.sync += [
            sum_4.eq(normal_4),
            exponent_4.eq(exponent_3 + 1 - (eights << 3)),
            sum_5.eq(normal_5),
            exponent_5.eq(exponent_4 - ones),
        ]

        # 6: round and pack
        kept, rest = sum_5[-SIGNIFICAND_BITS:], sum_5[:-SIGNIFICAND_BITS]
        up = rest[-1] & (kept[0] | rest[:-1].any())
        packed, magnitude = Signal(31), Signal(31)
        m.d.comb += packed.eq(Cat(kept[:-1], exponent_5[:8]) + up)
        with m.If(other[4].nan | other[4].infinity | (exponent_5 == 255)):
            m.d.comb += magnitude.eq(Mux(other[4].nan, NAN, INFINITY))
        with m.Elif(kept[-1] & (exponent_5 > 0)):
            m.d.comb += magnitude.eq(packed)
        sign = Mux(kept[-1], other[4].sign, other[4].zero_sign)
        m.d.sync += self.o.eq(Cat(magnitude, sign & ~other[4].nan))
        return m
