"""Sum, difference, maximum or minimum of two numbers or integers."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.timing import FP32_MAXIMUM
from sley.abi.vector.operations import FLOAT_ADD, INTEGER_ADD
from sley.hw.fp.add import AddOrdered
from sley.hw.fp.float32 import FRACTION_BITS, Float32


class Binary(wiring.Component):
    """a + b, or the larger or smaller of a and b, as int32 or fp32: +0 is larger than -0, NaN if either is a NaN.

    One carry chain adds integers and compares, which is the first stage of an fp32 sum and of a maximum; it compares by
    subtraction, with b inverted before it arrives, where that costs nothing. The second stage orders the operands.

    Members
    -------
    maximum : In(1), float : In(1)
        The larger one, else the sum; as fp32, else int32. Constant while operands are in flight.
    minimum : In(1)
        With ``maximum``: the smaller one.
    carry : In(1)
        One more in an integer sum: a difference, where an operand comes inverted.
    a, b : In(32)
        The operands, as bit patterns; b inverted unless this is an integer sum.
    integer : Out(32)
        An integer sum of INTEGER_LATENCY cycles ago; 0 if another result is asked for.
    larger : Out(32)
        A maximum of MAXIMUM_LATENCY cycles ago, likewise.
    sum : Out(32)
        An fp32 sum of SUM_LATENCY cycles ago, likewise.

    Latency
    -------
    INTEGER_LATENCY, MAXIMUM_LATENCY or SUM_LATENCY cycles.

    Throughput
    ----------
    One result per cycle.

    Cost
    ----
    ``AddOrdered``, some 130 flip-flops, a carry chain of 32 bits, a multiplexer of two words.
    """

    INTEGER_LATENCY = INTEGER_ADD
    MAXIMUM_LATENCY = FP32_MAXIMUM
    SUM_LATENCY = FLOAT_ADD

    maximum: Signal
    float: Signal
    minimum: Signal
    carry: Signal
    a: Signal
    b: Signal
    integer: Signal
    larger: Signal
    sum: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "maximum": In(1),
                "float": In(1),
                "minimum": In(1),
                "carry": In(1),
                "a": In(32),
                "b": In(32),
                "integer": Out(32),
                "larger": Out(32),
                "sum": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        compare = self.maximum | self.float

        # 1: add, or compare all below the signs: the carry into the top is that a >= b
        total = (Cat(1, self.a) + Cat(compare | self.carry, self.b))[1:33]
        m.d.sync += self.integer.eq(total)
        with m.If(compare):
            m.d.sync += self.integer.eq(0)
        a_negative, b_negative = self.a[-1], ~self.b[-1]
        at_least = total[-1] ^ self.a[-1] ^ self.b[-1]
        a_1, b_1, swap_1 = Signal(32, reset_less=True), Signal(32, reset_less=True), Signal(reset_less=True)
        reverse = self.maximum & self.float & a_negative & b_negative
        m.d.sync += [
            a_1.eq(self.a),
            b_1.eq(self.b),
            swap_1.eq(Mux(self.maximum & (a_negative ^ b_negative), a_negative, at_least == reverse) ^ self.minimum),
        ]
        nan_1 = Signal(reset_less=True)
        m.d.sync += nan_1.eq(self.float & (Float32(self.a).is_nan() | Float32(~self.b).is_nan()))

        # 2: order; a maximum is flushed
        first, second = Mux(swap_1, ~b_1, a_1), Mux(swap_1, a_1, ~b_1)
        m.d.sync += [
            self.larger.eq(Cat(first[:31], first[31] & ~nan_1)),
            self.larger[FRACTION_BITS - 1 : 31].eq(first[FRACTION_BITS - 1 : 31] | nan_1.replicate(9)),
        ]
        with m.If(self.float & (nan_1 | Float32(first).is_zero())):
            m.d.sync += self.larger[: FRACTION_BITS - 1].eq(0)
        with m.If(self.float & ~nan_1 & Float32(first).is_zero()):
            m.d.sync += self.larger[FRACTION_BITS - 1].eq(0)
        with m.If(~self.maximum):
            m.d.sync += self.larger.eq(0)

        m.submodules.add = add = AddOrdered()
        m.d.comb += [
            add.use.eq(self.float & ~self.maximum),
            add.larger.eq(first),
            add.smaller.eq(second),
            self.sum.eq(add.o),
        ]
        return m
