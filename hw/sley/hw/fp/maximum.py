"""The larger of two fp32 numbers."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.float32 import NAN, Float32


class Maximum(wiring.Component):
    """o = the larger of a and b; +0 is larger than -0; NaN if either is a NaN.

    Stages: 1 flushes subnormal numbers and makes keys that order like the numbers; 2 compares and selects.

    Members
    -------
    a, b: the operands, as bit patterns.
    o: the larger one of LATENCY cycles ago.

    Latency 2, one result per cycle. Cost: 97 flip-flops, a 32-bit carry chain.
    """

    LATENCY = 2

    a: Signal
    b: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(32), "b": In(32), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        keys = []
        nan = Signal(reset_less=True)
        for name in ("a", "b"):
            pattern = getattr(self, name)
            number = Float32(pattern)
            flushed = Cat(Mux(number.is_zero(), Const(0, 31), pattern[:31]), number.sign)
            key = Signal(32, name=f"key_{name}", reset_less=True)
            m.d.sync += key.eq(flushed ^ Cat(number.sign.replicate(31), 1))
            keys.append(key)
        m.d.sync += nan.eq(Float32(self.a).is_nan() | Float32(self.b).is_nan())
        larger = Mux(keys[0] > keys[1], keys[0], keys[1])
        m.d.sync += self.o.eq(Mux(nan, NAN, larger ^ Cat((~larger[31]).replicate(31), 1)))
        return m
