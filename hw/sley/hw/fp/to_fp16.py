"""Conversion from fp32 to fp16."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.timing import FP32_TO_FP16
from sley.hw.fp.float32 import BIAS, Float32

FP16_BIAS = 15
LOWEST = BIAS - FP16_BIAS + 1
"""The exponent in fp32 of the smallest normal fp16."""
BEYOND = LOWEST + 30
"""The exponent in fp32 of the smallest number that is beyond all fp16."""
TO_UNITS = 24
"""An fp16 below the normal range is a multiple of 2^-24."""


class ToFP16(wiring.Component):
    """o = i rounded half to even to fp16, gradual underflow included. Beyond the largest fp16: infinity; NaN: 0x7E00.

    ``ToInt32`` shifts and rounds, with its ``fp16``: it gives a significand of 11 bits and, for a number below the
    normal range, the multiple of 2^-24 that an fp16 has there for a fraction. This adds the exponent: the leading one
    of the significand, and a carry of its rounding, count in it.

    Members
    -------
    i : In(32)
        A bit pattern.
    rounded : In(12)
        What ``ToInt32`` makes of it, LATENCY cycles later; 0 for what is infinite or NaN.
    o : Out(16)
        The fp16 of LATENCY cycles ago; combinational from ``rounded``.

    Latency
    -------
    LATENCY cycles.

    Throughput
    ----------
    One conversion per cycle.

    Cost
    ----
    21 flip-flops, a carry chain of 5 bits.
    """

    LATENCY = FP32_TO_FP16

    i: Signal
    rounded: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"i": In(32), "rounded": In(12), "o": Out(16)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i = Float32(self.i)
        exponent, nan, sign = Signal(5), Signal(), Signal()
        m.d.comb += [
            exponent.eq(Mux(i.exponent >= LOWEST, i.exponent - LOWEST, 0)),
            nan.eq(i.is_nan()),
            sign.eq(i.sign & ~nan),
        ]
        with m.If(i.exponent >= BEYOND):
            m.d.comb += exponent.eq(31)
        beside = Cat(exponent, nan, sign)
        for stage in range(1, self.LATENCY + 1):
            later = Signal(len(beside), name=f"beside_{stage}", reset_less=True)
            m.d.sync += later.eq(beside)
            beside = later
        total = Signal(5)
        m.d.comb += [
            total.eq(self.rounded[10:] + beside[:5]),
            self.o.eq(Cat(self.rounded[:9], self.rounded[9] | beside[5], total, beside[6])),
        ]
        return m
