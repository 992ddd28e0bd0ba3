"""fp32 addition."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.timing import FP32_ADD, FP32_FROM_INT32
from sley.hw.fp.float32 import BIAS, FRACTION_BITS, SIGNIFICAND_BITS, Float32, normalise, pack

GUARD_BITS = 3
SUM_BITS = 1 + SIGNIFICAND_BITS + GUARD_BITS
"""A sum: the carry, a significand, and the guard, round and sticky bits."""
INTEGER_BITS = 32

_OTHER = data.StructLayout({"sign": 1, "zero_sign": 1, "special": 1, "nan": 1})
"""What travels beside the significands: the sign of the sum and of an exact zero; infinite or NaN; NaN."""


class AddOrdered(wiring.Component):
    """o = larger + smaller, two numbers in the order of their magnitudes, rounded to nearest even.

    Stages: 1 unpacks; 2 aligns the smaller one, where guard, round and sticky bit catch what it loses; 3 adds or
    subtracts; 4 and 5 normalise; 6 rounds and packs. A sum below the smallest normal number is a multiple of the
    smallest subnormal one, hence exact, and becomes zero of its sign. A sum that is exactly zero is negative only if
    both operands are.

    The last four stages can turn integers into numbers: those of the adder are then a magnitude.

    Parameters
    ----------
    convert : bool
        Whether there are ``convert`` and ``integer``.

    Members
    -------
    use : In(1)
        0 makes ``o`` 0. It and ``convert`` are constant while operands are in flight.
    larger, smaller : In(32)
        The operands, as bit patterns.
    convert : In(1), integer : In(INTEGER_BITS)
        ``o`` is this int32 as fp32, rounded to nearest even.
    o : Out(32)
        The sum of the operands of LATENCY cycles ago, the integer of CONVERT_LATENCY cycles ago.
    nan : Out(1)
        It is a NaN.

    Latency
    -------
    LATENCY cycles, CONVERT_LATENCY for an integer.

    Throughput
    ----------
    One result per cycle.

    Cost
    ---- Some 330 flip-flops, carry chains of 8, 27, 9 and 32 bits, two 28-bit shifters; with ``convert`` those of 27
    and 28 bits have 32.
    """

    LATENCY = FP32_ADD
    CONVERT_LATENCY = FP32_FROM_INT32

    use: Signal
    larger: Signal
    smaller: Signal
    convert: Signal
    integer: Signal
    o: Signal
    nan: Signal

    def __init__(self, *, convert: bool = False) -> None:
        self._convert = convert
        conversion = {"convert": In(1), "integer": In(INTEGER_BITS)} if convert else {}
        super().__init__({"use": In(1), "larger": In(32), "smaller": In(32), "o": Out(32), "nan": Out(1)} | conversion)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width = INTEGER_BITS if self._convert else SUM_BITS
        other = [Signal(_OTHER, name=f"other_{stage}", reset_less=True) for stage in range(1, 6)]
        m.d.sync += [after.eq(before) for before, after in pairwise(other)]

        # 1: unpack
        larger, smaller = Float32(self.larger), Float32(self.smaller)
        larger_1 = Signal(SIGNIFICAND_BITS, reset_less=True)
        smaller_1 = Signal(SIGNIFICAND_BITS, reset_less=True)
        distance_1, exponent_1 = Signal(5, reset_less=True), Signal(8, reset_less=True)
        subtract_1 = Signal(reset_less=True)
        distance = (larger.exponent - smaller.exponent)[:8]
        m.d.sync += [
            larger_1.eq(Cat(larger.fraction, ~larger.is_zero())),
            smaller_1.eq(Cat(smaller.fraction, 1)),
            subtract_1.eq(larger.sign ^ smaller.sign),
            distance_1.eq(distance),
            exponent_1.eq(larger.exponent),
            other[0].zero_sign.eq(larger.sign & smaller.sign),
            other[0].sign.eq(larger.sign & (smaller.sign | ~larger.is_zero())),
        ]
        with m.If(smaller.is_zero()):
            m.d.sync += smaller_1.eq(0)
        with m.If(distance[5:].any()):  # an operand that is 26 places or more below the other is only a sticky bit
            m.d.sync += distance_1.eq(~0)

        # 2: align; long steps first, because what they fill with zeros costs nothing in the next
        aligned: Value = Cat(Const(0, GUARD_BITS - 1), smaller_1)
        sticky: Value = Const(0, 1)
        for step in reversed(range(5)):
            sticky = sticky | (distance_1[step] & aligned[: 1 << step].any())
            aligned = Mux(distance_1[step], aligned >> (1 << step), aligned)
        larger_2 = Signal(SIGNIFICAND_BITS, reset_less=True)
        aligned_2, exponent_2 = Signal(SUM_BITS - 2, reset_less=True), Signal(8, reset_less=True)
        sticky_2, subtract_2, carry_2 = Signal(reset_less=True), Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            larger_2.eq(larger_1),
            aligned_2.eq(aligned ^ subtract_1.replicate(SUM_BITS - 2)),
            sticky_2.eq(sticky | subtract_1),
            subtract_2.eq(subtract_1),
            carry_2.eq(subtract_1 & ~sticky),
            exponent_2.eq(exponent_1),
        ]
        special = exponent_1.all()
        m.d.sync += [
            other[1].nan.eq(special & (larger_1[:FRACTION_BITS].any() | (subtract_1 & (distance_1 == 0)))),
            other[1].special.eq(special),
        ]

        # 3: add; the extra bit below is the carry in
        padding = width - SUM_BITS
        first = Cat(1, Const(0, padding + GUARD_BITS), larger_2, Const(0, 1))
        second: Value = Cat(carry_2, subtract_2.replicate(padding), sticky_2, aligned_2, subtract_2)
        sum_3, exponent_3 = Signal(width, reset_less=True), Signal(8, reset_less=True)
        if self._convert:
            negative = self.convert & self.integer[-1]
            magnitude = (self.integer ^ negative.replicate(INTEGER_BITS)) & self.convert.replicate(INTEGER_BITS)
            second = second | Cat(negative, magnitude)
            m.d.sync += other[2].sign.eq(other[1].sign | negative)
            with m.If(self.convert):
                m.d.sync += [
                    Cat(larger_2, aligned_2, sticky_2, subtract_2, carry_2, other[1]).eq(0),
                    exponent_2.eq(BIAS + INTEGER_BITS - 2),  # of a leading one in the place of larger_2's
                ]
        m.d.sync += [
            sum_3.eq((first + second)[1 : 1 + width]),
            exponent_3.eq(exponent_2),
        ]

        # 4, 5: normalise; the leading one moves to the carry's place
        sum_4, sum_5 = Signal(width, reset_less=True), Signal(width, reset_less=True)
        exponent_4, eights_4 = Signal(8, reset_less=True), Signal(2, reset_less=True)
        exponent_5 = Signal(range(-32, 256), reset_less=True)
        normal_4, eights = normalise(sum_3, (16, 8))
        normal_5, ones = normalise(sum_4, (4, 2, 1))
        m.d.sync += [
            sum_4.eq(normal_4),
            exponent_4.eq(exponent_3),
            eights_4.eq(eights),
            sum_5.eq(normal_5),
            exponent_5.eq(exponent_4 - Cat(ones, eights_4)),
        ]

        # 6: round and pack; the leading one makes the exponent that of its own place
        significand, rest = sum_5[-SIGNIFICAND_BITS:], sum_5[:-SIGNIFICAND_BITS]
        up, last = rest[-1] & (significand[0] | rest[:-1].any()), other[4]
        packed = (Cat(1, significand[:-1], exponent_5[:8]) + Cat(up, Const(0, FRACTION_BITS), significand[-1]))[1:32]
        special = last.special | (exponent_5 == 254)
        nothing = ~significand[-1] | (exponent_5 < 0)
        sign = Mux(significand[-1], last.sign, last.zero_sign)
        m.d.sync += self.nan.eq(last.nan & self.use)
        pack(m, self.o, packed, sign, nan=last.nan, special=special, nothing=nothing, use=self.use)
        return m
