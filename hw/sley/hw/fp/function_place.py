"""What a function's polynomial is evaluated at: the segment of an operand, its place there, and the exponent."""

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.functions.table import (
    COARSE_BITS,
    CODE_BITS,
    FINE_BITS,
    FUNCTIONS,
    INNER_BITS,
    OFFSET_BITS,
    PLACE_BITS,
    W_BITS,
    Function,
    bases,
)
from sley.hw.fp.float32 import BIAS, FRACTION_BITS, SIGNIFICAND_BITS, Float32
from sley.hw.fp.function_integer import RoundedSignificand
from sley.hw.fp.function_logarithm import IntegerPart, integer_part, normalised
from sley.hw.fp.function_operand import (
    FIXED,
    OPERAND,
    OUTCOME,
    ROUNDING,
    UNIT_BITS,
    UNITS,
    Selection,
    operands,
    register,
)
from sley.hw.fp.function_result import outcome, result_exponent

BLOCK_BITS = 6
"""Of the number of 32 segments; all functions together have fewer than 64 such blocks."""


class FunctionPlace(wiring.Component):
    """Operand to segment, place and exponent.

    Stages: 1 unpacks; 2 and 3 shift; 4 chooses. ``docs/theory/numerics.md`` says what comes of an operand.

    Parameters
    ----------
    functions : Collection[Function]
        Those of the chip. What none of them needs is left out.

    Members
    -------
    code : In(CODE_BITS)
        The function; constant while operands are in flight.
    i : In(32)
        A bit pattern.
    segment : Out(5), block : Out(BLOCK_BITS)
        The segment, in blocks of 32.
    inner : Out(INNER_BITS), w : Out(W_BITS)
        Variables of the polynomial.
    addend : Out(7)
        The integer part of a logarithm, as upper bits of c0.
    invert : Out(1)
        The sum is subtracted.
    exponent : Out(signed(9)), increment : Out(1)
        Exponent of the result without that of the segment, and what is to be added to it.
    outcome : Out(OUTCOME)
        What is known of the result.

    Latency
    -------
    LATENCY cycles.

    Throughput
    ----------
    One operand per cycle.

    Cost
    ----
    With all functions some 330 flip-flops, a 32-bit shifter, a 24-bit normalising shift, carry chains of 23 and 9 bits.
    """

    LATENCY = 4

    code: Signal
    i: Signal
    segment: Signal
    block: Signal
    inner: Signal
    w: Signal
    addend: Signal
    invert: Signal
    exponent: Signal
    increment: Signal
    outcome: data.View

    def __init__(self, functions: Collection[Function]) -> None:
        self._functions = frozenset(functions)
        super().__init__(
            {
                "code": In(CODE_BITS),
                "i": In(32),
                "segment": Out(COARSE_BITS),
                "block": Out(BLOCK_BITS),
                "inner": Out(INNER_BITS),
                "w": Out(W_BITS),
                "addend": Out(7),
                "invert": Out(1),
                "exponent": Out(signed(9)),
                "increment": Out(1),
                "outcome": Out(OUTCOME),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i = Float32(self.i)
        selection = Selection(self._functions, self.code)
        of = selection.of
        is_log2, is_fixed, is_rounding = of(Function.LOG2), of(*FIXED), of(*ROUNDING)
        is_exp2, is_tanh = of(Function.EXP2), of(Function.TANH)

        # 1: unpack. A logarithm near 1 begins with the distance from 1, below it with twice of that.
        fields = Signal(OPERAND)
        m.d.comb += [
            fields.sign.eq(i.sign),
            fields.exponent.eq(i.exponent),
            fields.some.eq(i.fraction.any()),
            fields.zero.eq(i.is_zero()),
            fields.special.eq(i.exponent.all()),
        ]
        operand = operands(m, fields, 3)
        negate = is_log2 & (i.exponent == BIAS - 1)
        fraction = register(m, "fraction", ((i.fraction ^ negate.replicate(FRACTION_BITS)) + negate)[:FRACTION_BITS])
        top = BIAS + UNIT_BITS - 1 + Mux(of(Function.SIGMOID), 2, 0)
        steps = Mux(is_fixed, top - i.exponent, Mux(is_rounding, 32, UNIT_BITS - 1))[:9]
        distance = register(m, "distance_1", steps)

        integer: Value = Const(0, SIGNIFICAND_BITS + 1)
        if selection.has(*ROUNDING):
            m.submodules.integer = part = RoundedSignificand()
            m.d.comb += [
                part.use.eq(is_rounding),
                part.down.eq(of(Function.FLOOR)),
                part.sign.eq(operand[1].sign),
                part.exponent.eq(operand[1].exponent),
                part.fraction.eq(fraction),
            ]
            integer = part.o

        # 2 and 3: shift; without functions that need it the distance is a constant
        shifted: Value = Cat(Const(0, UNIT_BITS + 1), fraction, 1)
        keep = ~(distance[5:8].any() & ~distance[8])
        shifted = Mux(distance[4], shifted >> 16, shifted) & keep.replicate(32)
        shifted = register(m, "shifted_2", Mux(distance[3], shifted >> 8, shifted))
        beyond = register(m, "beyond_3", register(m, "beyond_2", distance[8] & is_fixed))
        low = register(m, "distance_2", distance[:3])
        for step in (4, 2, 1):
            shifted = Mux(low[step.bit_length() - 1], shifted >> step, shifted)
        mirror, below = ~is_exp2 & is_fixed, is_exp2 & operand[2].sign
        upper = PLACE_BITS - FINE_BITS
        flips = Cat((below | mirror).replicate(upper), below.replicate(32 - upper))
        number = register(m, "number_3", shifted ^ flips)
        argument, zeros = normalised(m, selection, fraction)
        logarithm = integer_part(m, selection, operand[2])

        # 4: choose
        unit, place = number[PLACE_BITS:], number[:PLACE_BITS]
        near = logarithm.near
        fine = (near & is_log2) | (is_tanh & ~unit.any() & ~beyond)
        relative = fine & ~place[-2:].any()
        self._choose_segment(m, selection, operand[3], unit, place, fine, logarithm)
        coarse = Cat(place[upper:OFFSET_BITS] ^ mirror.replicate(OFFSET_BITS - upper)) & ~fine.replicate(2)
        t = Cat(place[:upper], coarse)
        zoom = FINE_BITS - COARSE_BITS
        m.d.sync += [
            self.inner.eq(Mux(fine, t[OFFSET_BITS - INNER_BITS - zoom : -zoom], t[OFFSET_BITS - INNER_BITS :])),
            self.w.eq(Mux(relative, Cat(Const(0, 2), argument), t) | Cat(Const(0, 1), integer)),
            self.addend.eq(logarithm.addend & (is_log2 & ~near).replicate(7)),
        ]
        m.d.sync += self.invert.eq(
            of(Function.RECIPROCAL, Function.RSQRT)
            | (is_tanh & ~relative)
            | (of(*UNITS) & ~operand[3].sign)
            | (is_log2 & ~near & logarithm.below)
        )
        integer_of_exp2 = Cat(unit, operand[3].sign)
        exponent, increment = result_exponent(m, selection, operand[3], integer_of_exp2, zeros, relative)
        m.d.sync += [self.exponent.eq(exponent), self.increment.eq(increment)]
        outcome(m, self.outcome, selection, operand[3], unit, beyond)
        return m

    def _choose_segment(
        self,
        m: Module,
        selection: Selection,
        operand: data.View,
        unit: Value,
        place: Value,
        fine: Value,
        logarithm: IntegerPart,
    ) -> None:
        fine_block = Cat(place[-2:], logarithm.below & selection.of(Function.LOG2))
        number: Value = Mux(selection.of(*FIXED) & ~selection.of(Function.EXP2), unit[:4], 0)
        number = Mux(selection.of(Function.RSQRT, Function.SQRT), ~operand.exponent[0], number)
        number = Mux(selection.of(Function.LOG2), logarithm.scale, number)
        offset = Signal(BLOCK_BITS)
        base = bases(function for function in self._functions if FUNCTIONS[function].segments)
        with m.Switch(self.code):
            for function, first in base.items():
                with m.Case(function):
                    block = first >> COARSE_BITS
                    regions = FUNCTIONS[function].regions
                    if function == Function.LOG2:
                        m.d.comb += offset.eq(Mux(fine, block, block + (regions[2].first >> COARSE_BITS)))
                    elif function == Function.TANH:
                        m.d.comb += offset.eq(Mux(fine, block, block + (regions[1].first >> COARSE_BITS) - 1))
                    elif function in UNITS:
                        m.d.comb += offset.eq(Mux(operand.sign, block + (regions[1].first >> COARSE_BITS), block))
                    else:
                        m.d.comb += offset.eq(block)
        low = FINE_BITS - COARSE_BITS
        m.d.sync += [
            self.segment.eq(Mux(fine, place[-FINE_BITS:-low], place[-COARSE_BITS:])),
            self.block.eq(Mux(fine, fine_block, number) + offset),
        ]
