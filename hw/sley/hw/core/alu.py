"""Arithmetic of the sequencer: the scalar operations and the comparisons of branches."""

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import FORMATS, Op

BRANCH_OPS = frozenset({Op.BEQ, Op.BNE, Op.BLT, Op.BGE})


class Alu(wiring.Component):
    """One operation on two 32-bit operands.

    Members
    -------
    op : In(8)
        An operation with a result (but for MUL), or a branch.
    a, b : In(32)
        Operands.
    result : Out(32)
        Combinational.
    taken : Out(1)
        Combinational: the branch ``op`` is taken.
    product : Out(32)
        Low half of ``a * b`` of the cycle before.

    Cost: one adder, one comparator, two 32-bit shifters, three 16 x 16 multipliers with registers behind them.
    """

    op: Signal
    a: Signal
    b: Signal
    result: Signal
    taken: Signal
    product: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "op": In(FORMATS[Op.END].layout.fields["op"].width),
                "a": In(32),
                "b": In(32),
                "result": Out(32),
                "taken": Out(1),
                "product": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = self.a, self.b
        less = Signal()
        equal = Signal()
        m.d.comb += [less.eq(a.as_signed() < b.as_signed()), equal.eq(a == b)]
        with m.Switch(self.op):
            for op, value in (
                (Op.ADD, a + b),
                (Op.SUB, a - b),
                (Op.MIN, Mux(less, a, b)),
                (Op.MAX, Mux(less, b, a)),
                (Op.AND, a & b),
                (Op.OR, a | b),
                (Op.SHL, (a << b[:5])[:32]),
                (Op.SHR, a >> b[:5]),
            ):
                with m.Case(op):
                    m.d.comb += self.result.eq(value)
            for op, value in ((Op.BEQ, equal), (Op.BNE, ~equal), (Op.BLT, less), (Op.BGE, ~less)):
                with m.Case(op):
                    m.d.comb += self.taken.eq(value)

        # Partial products of 16 bits fit the multipliers of an FPGA; the high one does not reach the low 32 bits.
        low = Signal(32, reset_less=True)
        cross = [Signal(16, reset_less=True, name=f"cross_{i}") for i in range(2)]
        m.d.sync += [
            low.eq(a[:16] * b[:16]),
            cross[0].eq(a[:16] * b[16:]),
            cross[1].eq(a[16:] * b[:16]),
        ]
        m.d.comb += self.product.eq(low + ((cross[0] + cross[1]) << Const(16)))
        return m
