"""Arithmetic of the sequencer: the scalar operations and the comparisons of branches."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import FORMATS, Op


class Alu(wiring.Component):
    """One operation on two 32-bit operands, in two steps.

    What an operation does not use is zero in the second step, so that the result is all parts or'ed. An operand passes
    one LUT and one chain of carries in the first step; what comes of a comparison is the second's.

    Members
    -------
    op : In(8)
        An operation with a result or a branch, if not ``unit``; the same in both steps. Of others nothing is defined.
    a, b : In(32)
        Operands. They come late.
    start : In(1)
        First step of an operation.
    unit : In(1)
        The operation is ``a + b``, whatever ``op``.
    branch : In(1)
        The first step is that of a branch.
    multiply : In(1)
        The step between the first and the second of MUL.
    result : Out(32)
        Combinational, in the second step. In other cycles it is zero, but for the one behind a branch.
    taken : Out(1)
        Combinational, in the second step: ``op`` is a branch and taken.

    Cost
    ----
    An adder for a + b, a - b and a < b, a 32-bit shifter (to the right; SHL shifts bits in reverse order), three 16 x
    16 multipliers with registers behind them and two adders of 16 bits.
    """

    op: Signal
    a: Signal
    b: Signal
    start: Signal
    unit: Signal
    branch: Signal
    multiply: Signal
    result: Signal
    taken: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "op": In(FORMATS[Op.END].layout.fields["op"].width),
                "a": In(32),
                "b": In(32),
                "start": In(1),
                "unit": In(1),
                "branch": In(1),
                "multiply": In(1),
                "result": Out(32),
                "taken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()

        def among(*ops: Op) -> Value:
            """One of those scalar operations; they differ in these bits."""
            return self.op[:4].matches(*(op & 15 for op in ops))

        scalar = self.start & ~self.unit
        subtract = Signal()
        b = Signal(32)  # or ~b
        total = Signal(34)

        def sign_flipped(number: Value) -> Value:
            """With both signs turned a carry out of a - b says that a is not less, and the difference is the same."""
            return Cat(number[:-1], ~number[-1])

        m.d.comb += [
            # BLT and BGE, or those that are named.
            subtract.eq(~self.unit & Mux(self.op[5], self.op[1], among(Op.SUB, Op.MIN, Op.MAX))),
            b.eq(self.b ^ subtract.replicate(32)),
            total.eq(Cat(subtract, sign_flipped(self.a)) + Cat(subtract, sign_flipped(b))),
        ]

        # Every register loads in every cycle; what is not to be seen is cleared, which costs nothing in an FPGA.
        first = Signal(32, reset_less=True)
        second = Signal(32)
        amount = Signal(5, reset_less=True)
        total_kept = Signal(32)
        not_less = Signal(reset_less=True)
        same = Signal(16, reset_less=True)  # two bits of a and b each
        by_order = Signal()
        by_equality = Signal()
        otherwise = Signal(reset_less=True)
        left = Signal()
        right = Signal()
        fill = Signal()
        either = Signal()
        least = Signal()
        most = Signal()
        m.d.sync += [
            first.eq(Mux(among(Op.SHL), self.a[::-1], self.a)),
            amount.eq(b),
            not_less.eq(total[-1]),
            same.eq(Cat(self.a[k : k + 2] == b[k : k + 2] for k in range(0, 32, 2))),
            by_order.eq(self.branch & self.op[1]),
            by_equality.eq(self.branch & ~self.op[1]),
            otherwise.eq(self.op[0]),
            left.eq(scalar & among(Op.SHL)),
            right.eq(scalar & among(Op.SHR, Op.SAR)),
            fill.eq(scalar & among(Op.SAR) & self.a[-1]),
            either.eq(scalar & among(Op.OR)),
            least.eq(scalar & among(Op.MIN)),
            most.eq(scalar & among(Op.MAX)),
            total_kept.eq(total[1:]),
            second.eq(b),
        ]
        with m.If(~(self.start & (self.unit | among(Op.ADD, Op.SUB)))):
            m.d.sync += total_kept.eq(0)
        with m.If(~(scalar & among(Op.MIN, Op.MAX, Op.AND, Op.OR, Op.MUL))):
            m.d.sync += second.eq(0)

        # Partial products of 16 bits fit the multipliers of an FPGA; the high one does not reach the low 32 bits.
        low = Signal(32)
        cross = [Signal(16, name=f"cross_{i}") for i in range(2)]
        m.d.sync += [
            low.eq(first[:16] * second[:16]),
            cross[0].eq(first[:16] * second[16:]),
            cross[1].eq(first[16:] * second[:16]),
        ]
        with m.If(~self.multiply):
            m.d.sync += [part.eq(0) for part in (low, *cross)]

        shifted = Signal(32)
        logic = Signal(32)
        takes_first = Signal()  # of least and most
        m.d.comb += [
            shifted.eq(Cat(first, fill.replicate(31)) >> amount),
            takes_first.eq(either | (least & ~not_less) | (most & not_less)),
            logic.eq(
                Mux(least | most, Mux(takes_first, first, ~second), Mux(takes_first, first | second, first & second))
            ),
            self.result.eq(
                (shifted & right.replicate(32))
                | (shifted[::-1] & left.replicate(32))
                | (low + ((cross[0] + cross[1]) << Const(16)))[:32]
                | logic
                | total_kept
            ),
            self.taken.eq(
                (by_order & (not_less == otherwise)) | (by_equality & (same.all() ^ otherwise)),
            ),
        ]
        return m
