"""Comparisons, shifts and operations on bits of two words."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.abi.vector.operations import LOGIC, BinaryOp
from sley.hw.fp.float32 import Float32

ONE = 0x3F800000


class Logic(wiring.Component):
    """x op y for the ``LOGIC_OPS``. A comparison gives 1 of the type or 0; subnormal numbers are zeros, -0 = +0.

    Stage 1 compares, combines bits and shifts by 16 and 8; stage 2 shifts by 4, 2 and 1 and chooses.

    Members
    -------
    op : In(5), float : In(1)
        A code of ``BinaryOp``; comparisons are of fp32. Constant while operands are in flight.
    x, y : In(32)
        The operands, as bit patterns.
    o : Out(32)
        The result of LATENCY cycles ago; 0 for an operation that is none of these.

    Latency
    -------
    LATENCY cycles.

    Throughput
    ----------
    One result per cycle.

    Cost
    ----
    A carry chain of 32 bits, a shifter in both directions, some 110 flip-flops.
    """

    LATENCY = LOGIC

    op: Signal
    float: Signal
    x: Signal
    y: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"op": In(5), "float": In(1), "x": In(32), "y": In(32), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x, y, op = self.x, self.y, self.op

        # Below the signs the order of integers is that of magnitudes. A number that is zero has no sign and no
        # fraction: then the signs alone decide.
        x_zero, y_zero = (self.float & Float32(word).is_zero() for word in (x, y))
        x_negative, y_negative = x[31] & ~x_zero, y[31] & ~y_zero
        below_signs, equal_bits, nan = (Signal(name=name, reset_less=True) for name in ("below", "equal", "nan"))
        signs, zeros = Signal(2, reset_less=True), Signal(2, reset_less=True)
        m.d.sync += [
            below_signs.eq(x[:31] < y[:31]),
            equal_bits.eq(x[:31] == y[:31]),
            nan.eq(self.float & (Float32(x).is_nan() | Float32(y).is_nan())),
            signs.eq(Cat(x_negative, y_negative)),
            zeros.eq(Cat(x_zero, y_zero)),
        ]
        bits, coarse, distance = Signal(32, reset_less=True), Signal(32, reset_less=True), Signal(3, reset_less=True)
        with m.Switch(op):
            for code, word in (
                (BinaryOp.SECOND, y),
                (BinaryOp.AND, x & y),
                (BinaryOp.OR, x | y),
                (BinaryOp.XOR, x ^ y),
            ):
                with m.Case(code):
                    m.d.sync += bits.eq(word)
            with m.Default():
                m.d.sync += bits.eq(0)

        # A shift to the left is one to the right between two reversals
        left, fill = op == BinaryOp.SHL, Signal(reset_less=True)
        is_shift = op.matches(BinaryOp.SHL, BinaryOp.SHR, BinaryOp.SAR)
        above = x[31] & (op == BinaryOp.SAR)
        value: Value = Mux(left, x[::-1], x)
        for bit in (4, 3):
            value = Mux(y[bit], Cat(value[1 << bit :], above.replicate(1 << bit)), value)
        m.d.sync += [coarse.eq(value), distance.eq(y[:3]), fill.eq(above)]
        with m.If(~is_shift):
            m.d.sync += [coarse.eq(0), fill.eq(0)]

        shifted: Value = coarse
        for bit in (2, 1, 0):
            shifted = Mux(distance[bit], Cat(shifted[1 << bit :], fill.replicate(1 << bit)), shifted)
        equal = Mux(zeros.any(), zeros.all(), equal_bits)
        smaller = Mux(zeros.any(), zeros[0] & ~zeros[1], below_signs)
        reversed_order = self.float & signs[0]  # both are negative numbers
        below = Mux(signs[0] ^ signs[1], signs[0], Mux(reversed_order, ~smaller & ~equal, smaller)) & ~nan
        same = equal & (signs[0] == signs[1]) & ~nan
        holds = Signal()
        with m.Switch(op):
            with m.Case(BinaryOp.EQ):
                m.d.comb += holds.eq(same)
            with m.Case(BinaryOp.NE):
                m.d.comb += holds.eq(~same)
            with m.Case(BinaryOp.LT):
                m.d.comb += holds.eq(below)
            with m.Case(BinaryOp.LE):
                m.d.comb += holds.eq(below | same)
        one = Mux(self.float, ONE, 1)
        m.d.sync += self.o.eq(bits | Mux(left, shifted[::-1], shifted) | (one & holds.replicate(32)))
        return m
