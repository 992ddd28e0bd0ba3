"""The larger of two numbers."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.float32 import NAN, Float32


class Maximum(wiring.Component):
    """o = the larger of a and b, as fp32 or int32. fp32: +0 is larger than -0; NaN if either is a NaN.

    Stages: 1 flushes subnormal numbers and makes keys that order like the numbers; 2 compares and selects.

    Members
    -------
    integer: the operands are int32; constant while operands are on their way.
    a, b: the operands, as bit patterns.
    o: the larger one of LATENCY cycles ago.

    Latency 2, one result per cycle. Cost: 97 flip-flops, a 32-bit carry chain.
    """

    LATENCY = 2

    integer: Signal
    a: Signal
    b: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"integer": In(1), "a": In(32), "b": In(32), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        keys = []
        nan = Signal(reset_less=True)
        for name in ("a", "b"):
            pattern = getattr(self, name)
            number = Float32(pattern)
            magnitude = Mux(number.is_zero() & ~self.integer, Const(0, 31), pattern[:31])
            key = Signal(32, name=f"key_{name}", reset_less=True)
            m.d.sync += key.eq(Cat(magnitude ^ (number.sign & ~self.integer).replicate(31), ~number.sign))
            keys.append(key)
        m.d.sync += nan.eq((Float32(self.a).is_nan() | Float32(self.b).is_nan()) & ~self.integer)
        larger = Mux(keys[0] > keys[1], keys[0], keys[1])
        negative = ~larger[31]
        pattern = Cat(larger[:31] ^ (negative & ~self.integer).replicate(31), negative)
        m.d.sync += self.o.eq(Mux(nan, NAN, pattern))
        return m
