"""Conversion from fp32 to int32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.float32 import BIAS, Float32


class ToInt32(wiring.Component):
    """o = i rounded half to even, saturated to int32; a NaN becomes 0.

    Stages: 1 unpacks and decides saturation; 2 shifts; 3 rounds and negates.

    Members
    -------
    i: a bit pattern.
    o: the integer of LATENCY cycles ago.

    Latency 3, one conversion per cycle. Cost: some 110 flip-flops, carry chains of 8 and 32 bits, a 33-bit shifter.
    """

    LATENCY = 3

    i: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"i": In(32), "o": Out(signed(32))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i = Float32(self.i)

        # 1: unpack; the significand's top goes to bit 30 of an integer, from where it moves right
        significand_1, distance_1 = Signal(24, reset_less=True), Signal(5, reset_less=True)
        sign_1, saturate_1, nan_1 = Signal(reset_less=True), Signal(reset_less=True), Signal(reset_less=True)
        below_half = i.exponent < BIAS - 1
        m.d.sync += [
            significand_1.eq(Mux(below_half, 0, i.significand())),
            distance_1.eq(BIAS + 30 - i.exponent),
            sign_1.eq(i.sign),
            saturate_1.eq(i.exponent >= BIAS + 31),
            nan_1.eq(i.is_nan()),
        ]

        # 2: shift; the lowest bit is worth one half, the sticky bit collects what is below it
        shifted: Value = Cat(Const(0, 8), significand_1)
        sticky: Value = Const(0, 1)
        for step in range(5):
            sticky = sticky | (distance_1[step] & shifted[: 1 << step].any())
            shifted = Mux(distance_1[step], shifted >> (1 << step), shifted)[:32]
        magnitude_2, sticky_2 = Signal(32, reset_less=True), Signal(reset_less=True)
        sign_2, saturate_2, nan_2 = Signal(reset_less=True), Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            magnitude_2.eq(shifted),
            sticky_2.eq(sticky),
            sign_2.eq(sign_1),
            saturate_2.eq(saturate_1),
            nan_2.eq(nan_1),
        ]

        # 3: round and negate in one addition: -(x + up) = ~x + 1 - up
        integer, half = magnitude_2[1:], magnitude_2[0]
        up = half & (integer[0] | sticky_2)
        with m.If(nan_2):
            m.d.sync += self.o.eq(0)
        with m.Elif(saturate_2):
            m.d.sync += self.o.eq(Mux(sign_2, -(1 << 31), (1 << 31) - 1))
        with m.Else():
            m.d.sync += self.o.eq((Cat(integer, Const(0, 1)) ^ sign_2.replicate(32)) + (up ^ sign_2))
        return m
