"""Arithmetic of the sequencer: the scalar operations and the comparisons of branches."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import FORMATS, Op

BRANCH_OPS = frozenset({Op.BEQ, Op.BNE, Op.BLT, Op.BGE})


class Alu(wiring.Component):
    """One operation on two 32-bit operands, in two steps.

    Members
    -------
    op : In(8)
        An operation with a result or a branch, if not ``unit``; the same in both steps. Of others nothing is defined.
    a, b : In(32)
        Operands.
    start : In(1)
        First step of an operation.
    unit : In(1)
        ``result`` is the sum of ``a`` of the first step and ``addend``.
    addend : In(32)
        In the second step.
    multiply : In(1)
        The step between the first and the second of MUL.
    result : Out(32)
        Combinational, in the second step; in a cycle that is none it is zero.
    equal : Out(1)
        Combinational, in the first step: ``a = b``.
    taken : Out(1)
        Combinational, in the first step: the branch ``op`` is taken.

    What an operation does not use is zero in the second step, so that the result is all parts or'ed.
    Cost: an adder for a + b, a - b and a < b, one for units, a 32-bit shifter (to the right; SHL shifts bits in reverse
    order), three 16 x 16 multipliers with registers behind them and two adders of 16 bits.
    """

    op: Signal
    a: Signal
    b: Signal
    start: Signal
    unit: Signal
    addend: Signal
    multiply: Signal
    result: Signal
    equal: Signal
    taken: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "op": In(FORMATS[Op.END].layout.fields["op"].width),
                "a": In(32),
                "b": In(32),
                "start": In(1),
                "unit": In(1),
                "addend": In(32),
                "multiply": In(1),
                "result": Out(32),
                "equal": Out(1),
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
        total = Signal(33)
        less = Signal()
        m.d.comb += [
            subtract.eq(Mux(self.op[5], self.op[1], among(Op.SUB, Op.MIN, Op.MAX))),  # BLT and BGE, or those
            b.eq(self.b ^ subtract.replicate(32)),
            total.eq(Cat(subtract, self.a) + Cat(subtract, b)),
            less.eq(Mux(self.a[-1] == b[-1], self.a[-1], total[-1])),
            self.equal.eq(self.a == b),
            self.taken.eq(Mux(self.op[1], less, self.equal) ^ self.op[0]),
        ]

        # Every register loads in every cycle; what is not to be seen is cleared, which costs nothing in an FPGA.
        first = Signal(32, reset_less=True)
        second = Signal(32)
        amount = Signal(5, reset_less=True)
        total_there = Signal(32)
        left = Signal()
        right = Signal()
        moved = Signal()
        either = Signal()
        select = Signal()
        m.d.sync += [
            first.eq(Mux(among(Op.SHL) & ~self.unit, self.a[::-1], self.a)),
            amount.eq(b),
            left.eq(scalar & among(Op.SHL)),
            right.eq(scalar & among(Op.SHR)),
            moved.eq(self.start & self.unit),
            either.eq(scalar & (among(Op.OR) | (among(Op.MIN, Op.MAX) & (less ^ among(Op.MAX))))),
            select.eq(scalar & among(Op.MIN, Op.MAX)),
            total_there.eq(total[1:]),
            second.eq(b),
        ]
        with m.If(~(scalar & among(Op.ADD, Op.SUB))):
            m.d.sync += total_there.eq(0)
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
        m.d.comb += [
            shifted.eq(first >> amount),
            logic.eq(Mux(select, Mux(either, first, ~second), Mux(either, first | second, first & second))),
            self.result.eq(
                (shifted & right.replicate(32))
                | (shifted[::-1] & left.replicate(32))
                | ((first + self.addend)[:32] & moved.replicate(32))
                | (low + ((cross[0] + cross[1]) << Const(16)))[:32]
                | logic
                | total_there
            ),
        ]
        return m
