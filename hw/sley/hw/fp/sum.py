"""Sum of two numbers or integers; an integer sum as a number."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.add import AddOrdered
from sley.hw.fp.float32 import Float32


class Sum(wiring.Component):
    """a + b as int32, as int32 that becomes fp32, rounded to nearest even, or as fp32.

    One carry chain adds integers and compares magnitudes, which is the first stage of an fp32 sum; it compares by
    subtraction, with a inverted before it arrives, where that costs nothing. The second stage of an fp32 sum waits: so
    all sums are in time for the same next step.

    Members
    -------
    float : In(1), convert : In(1)
        The sum is one of fp32; it is an integer sum that becomes fp32. Constant while operands are in flight.
    a, b : In(32)
        The operands, as bit patterns; a inverted with ``float``.
    o : Out(32)
        The result of INTEGER_LATENCY, CONVERT_LATENCY or FLOAT_LATENCY cycles ago.
    nan : Out(1)
        It is a NaN, if it is taken for fp32.

    Latency
    -------
    INTEGER_LATENCY, CONVERT_LATENCY or FLOAT_LATENCY cycles.

    Throughput
    ----------
    One result per cycle.

    Cost
    ----
    ``AddOrdered``, some 190 flip-flops, a carry chain of 32 bits, two multiplexers and the choice of a word.
    """

    INTEGER_LATENCY = 2
    CONVERT_LATENCY = 1 + AddOrdered.CONVERT_LATENCY
    FLOAT_LATENCY = 2 + AddOrdered.LATENCY

    float: Signal
    convert: Signal
    a: Signal
    b: Signal
    o: Signal
    nan: Signal

    def __init__(self) -> None:
        super().__init__({"float": In(1), "convert": In(1), "a": In(32), "b": In(32), "o": Out(32), "nan": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()

        # 1: add, or compare all below the signs: the carry into the top is that b >= a
        total, a_1, b_1 = (Signal(32, name=name, reset_less=True) for name in ("total", "a_1", "b_1"))
        m.d.sync += [
            total.eq((Cat(1, self.a) + Cat(self.float, self.b))[1:33]),
            a_1.eq(self.a),
            b_1.eq(self.b),
        ]

        # 2: an integer is done
        integer_2, a_2, b_2 = (Signal(32, name=name, reset_less=True) for name in ("integer_2", "a_2", "b_2"))
        swap_2, nan_2 = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            integer_2.eq(total),
            a_2.eq(a_1),
            b_2.eq(b_1),
            nan_2.eq(Float32(total).is_nan()),
            swap_2.eq(total[-1] ^ a_1[-1] ^ b_1[-1]),
        ]
        with m.If(self.float | self.convert):
            m.d.sync += [integer_2.eq(0), nan_2.eq(0)]

        m.submodules.add = add = AddOrdered(convert=True)
        m.d.comb += [
            add.use.eq(self.float | self.convert),
            add.convert.eq(self.convert),
            add.integer.eq(total),
            add.larger.eq(Mux(swap_2, b_2, ~a_2)),
            add.smaller.eq(Mux(swap_2, ~a_2, b_2)),
            self.o.eq(add.o | integer_2),
            self.nan.eq(add.nan | nan_2),
        ]
        return m
