"""Conversion from fp32 to bf16."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.timing import FP32_TO_BF16
from sley.hw.fp.float32 import NAN, Float32


class ToBF16(wiring.Component):
    """o = i rounded half to even to bf16.

    A bf16 is the upper half of an fp32, so rounding is an increment of that half; its carry leads from the largest
    fraction to the next exponent and from the largest number to infinity. Subnormal numbers become zero of their sign.

    Members
    -------
    i : In(32)
        A bit pattern.
    o : Out(16)
        The bf16 of LATENCY cycles ago.

    Latency
    -------
    LATENCY cycles.

    Throughput
    ----------
    One conversion per cycle.

    Cost
    ----
    16 flip-flops, a carry chain of 15 bits.
    """

    LATENCY = FP32_TO_BF16

    i: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"i": In(32), "o": Out(16)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i = Float32(self.i)
        upper, rest = self.i[16:31], self.i[:16]
        up = rest[-1] & (upper[0] | rest[:-1].any())
        magnitude = Signal(15)
        m.d.comb += magnitude.eq(upper + up)
        with m.If(i.is_nan()):
            m.d.comb += magnitude.eq(NAN >> 16)
        with m.Elif(i.is_zero()):
            m.d.comb += magnitude.eq(0)
        m.d.sync += self.o.eq(Cat(magnitude, i.sign & ~i.is_nan()))
        return m
