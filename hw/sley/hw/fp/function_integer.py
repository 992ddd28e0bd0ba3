"""Rounding of an fp32 significand to an integer, which stays a significand."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.fp.carry_chain import SumOfChosen
from sley.hw.fp.float32 import FRACTION_BITS, SIGNIFICAND_BITS
from sley.hw.fp.function_operand import is_below


class RoundedSignificand(wiring.Component):
    """o = the significand of a number of 1 or more, rounded to an integer.

    Stages: 1 finds the places behind the point; 2 decides. The addition that rounds is combinational, behind stage 2.

    Members
    -------
    use : In(1)
        0 makes ``o`` 0, two cycles later.
    down : In(1)
        Rounds down instead of half to even; constant while operands are in flight.
    sign : In(1), exponent : In(8), fraction : In(23)
        The fields of the operand.
    o : Out(25)
        The significand, 2 included, in units of 2^-23.

    Latency
    -------
    2 cycles.

    Cost
    ----
    A carry chain of 25 bits, some 100 flip-flops.
    """

    use: Signal
    down: Signal
    sign: Signal
    exponent: Signal
    fraction: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "use": In(1),
                "down": In(1),
                "sign": In(1),
                "exponent": In(8),
                "fraction": In(FRACTION_BITS),
                "o": Out(SIGNIFICAND_BITS + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()

        # 1: an exponent of 127 + k leaves 23 - k places behind the point
        low, some = self.exponent[:5], self.exponent[7] & ~self.exponent[5:7].any()
        none = ~self.exponent[7]  # of a number of 1 or more: 127
        behind, fraction = Signal(FRACTION_BITS, reset_less=True), Signal(FRACTION_BITS, reset_less=True)
        sign = Signal(reset_less=True)
        m.d.sync += [
            behind.eq(Cat((some & is_below(low, FRACTION_BITS - 1 - k)) | none for k in range(FRACTION_BITS))),
            fraction.eq(self.fraction),
            sign.eq(self.sign),
        ]

        # 2: the place of one half, that of one, what is below and whether that is to be rounded up
        half, one = behind & ~Cat(behind[1:], 0), Cat(~behind, 1) & Cat(0, behind)
        tie_or_more, more = (fraction & half).any(), (fraction[:-1] & behind[1:]).any()
        odd = (Cat(fraction, 1) & one).any()
        kept, unit = Signal(SIGNIFICAND_BITS, reset_less=True), Signal(SIGNIFICAND_BITS, reset_less=True)
        up = Signal(reset_less=True)
        m.d.sync += [
            kept.eq(Cat(fraction & ~behind, 1)),
            unit.eq(one),
            up.eq(Mux(self.down, sign & (tie_or_more | more), tie_or_more & (more | odd))),
        ]
        with m.If(~self.use):
            m.d.sync += [kept.eq(0), up.eq(0)]
        m.submodules.round = total = SumOfChosen(SIGNIFICAND_BITS + 1)
        m.d.comb += [total.a.eq(kept), total.b.eq(unit), total.choose.eq(up), self.o.eq(total.o)]
        return m
