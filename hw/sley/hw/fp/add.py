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

    Stages: 1 compares the magnitudes; 2 orders the operands; 3 aligns the smaller one, where guard, round and sticky
    bit catch what it loses; 4 adds or subtracts; 5 and 6 normalise; 7 rounds and packs. A sum below the smallest normal
    number is a multiple of the smallest subnormal one, hence exact, and becomes zero of its sign. A sum that is exactly
    zero is negative only if both operands are.

    Members
    -------
    a, b: the operands, as bit patterns.
    o: the sum of the operands of LATENCY cycles ago.

    Latency 7, one sum per cycle. Cost: some 330 flip-flops, carry chains of 31, 28 and 31 bits, two 28-bit shifters.
    """

    LATENCY = 7

    a: Signal
    b: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(32), "b": In(32), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        other = [Signal(_OTHER, name=f"other_{stage}", reset_less=True) for stage in range(2, 7)]
        m.d.sync += [after.eq(before) for before, after in pairwise(other)]

        # 1: compare magnitudes
        a_1, b_1, swap_1 = Signal(32, reset_less=True), Signal(32, reset_less=True), Signal(reset_less=True)
        m.d.sync += [a_1.eq(self.a), b_1.eq(self.b), swap_1.eq(self.b[:31] > self.a[:31])]

        # 2: order
        a, b = Float32(a_1), Float32(b_1)
        larger, smaller = (Float32(Mux(swap_1, *pair)) for pair in ((b_1, a_1), (a_1, b_1)))
        larger_2 = Signal(SIGNIFICAND_BITS, reset_less=True)
        smaller_2 = Signal(SIGNIFICAND_BITS, reset_less=True)
        distance_2, exponent_2 = Signal(8, reset_less=True), Signal(8, reset_less=True)
        subtract_2 = Signal(reset_less=True)
        opposite = a.sign ^ b.sign
        m.d.sync += [
            larger_2.eq(larger.significand()),
            smaller_2.eq(smaller.significand()),
            distance_2.eq(Mux(swap_1, b.exponent - a.exponent, a.exponent - b.exponent)),
            exponent_2.eq(larger.exponent),
            subtract_2.eq(opposite),
            other[0].sign.eq(larger.sign),
            other[0].zero_sign.eq(a.sign & b.sign),
            other[0].infinity.eq(a.is_infinity() | b.is_infinity()),
            other[0].nan.eq(a.is_nan() | b.is_nan() | (a.is_infinity() & b.is_infinity() & opposite)),
        ]

        # 3: align; an operand that is 32 places or more below the other cannot change the rounded sum
        aligned: Value = Cat(Const(0, GUARD_BITS - 1), smaller_2)
        sticky: Value = Const(0, 1)
        for step in range(5):
            sticky = sticky | (distance_2[step] & aligned[: 1 << step].any())
            aligned = Mux(distance_2[step], aligned >> (1 << step), aligned)[: SUM_BITS - 2]
        larger_3 = Signal(SIGNIFICAND_BITS, reset_less=True)
        aligned_3 = Signal(SUM_BITS - 1, reset_less=True)
        subtract_3, exponent_3 = Signal(reset_less=True), Signal(8, reset_less=True)
        m.d.sync += [
            larger_3.eq(larger_2),
            aligned_3.eq(Mux(distance_2[5:].any(), 0, Cat(sticky, aligned))),
            subtract_3.eq(subtract_2),
            exponent_3.eq(exponent_2),
        ]

        # 4: add; the extra bit below is the carry in
        sum_4, exponent_4 = Signal(SUM_BITS, reset_less=True), Signal(8, reset_less=True)
        first = Cat(1, Const(0, GUARD_BITS), larger_3)
        second = Cat(aligned_3, Const(0, 1)) ^ subtract_3.replicate(SUM_BITS)
        m.d.sync += [
            sum_4.eq((first + Cat(subtract_3, second))[1:]),
            exponent_4.eq(exponent_3),
        ]

        # 5, 6: normalise; the leading one moves to the carry's place
        sum_5, sum_6 = Signal(SUM_BITS, reset_less=True), Signal(SUM_BITS, reset_less=True)
        exponent_5, exponent_6 = Signal(range(-32, 256), reset_less=True), Signal(range(-32, 256), reset_less=True)
        normal_5, eights = normalise(sum_4, (16, 8))
        normal_6, ones = normalise(sum_5, (4, 2, 1))
        m.d.sync += [
            sum_5.eq(normal_5),
            exponent_5.eq(exponent_4 + 1 - (eights << 3)),
            sum_6.eq(normal_6),
            exponent_6.eq(exponent_5 - ones),
        ]

        # 7: round and pack
        kept, rest = sum_6[-SIGNIFICAND_BITS:], sum_6[:-SIGNIFICAND_BITS]
        up = rest[-1] & (kept[0] | rest[:-1].any())
        packed, magnitude = Signal(31), Signal(31)
        m.d.comb += packed.eq(Cat(kept[:-1], exponent_6[:8]) + up)
        with m.If(other[4].nan | other[4].infinity | (exponent_6 == 255)):
            m.d.comb += magnitude.eq(Mux(other[4].nan, NAN, INFINITY))
        with m.Elif(kept[-1] & (exponent_6 > 0)):
            m.d.comb += magnitude.eq(packed)
        sign = Mux(kept[-1], other[4].sign, other[4].zero_sign)
        m.d.sync += self.o.eq(Cat(magnitude, sign & ~other[4].nan))
        return m
