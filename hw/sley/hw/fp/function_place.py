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
from sley.hw.fp.function_integer import IntegerPart, is_below

FIXED = (Function.EXP2, Function.TANH, Function.SIGMOID, Function.NORMAL_CDF)
"""Functions whose operand becomes a fixed-point number, with ``UNIT_BITS`` before the point."""
ROUNDING = (Function.FLOOR, Function.ROUND)
"""Functions that multiply a rounded significand by 1."""
UNIT_BITS = 7
BLOCK_BITS = 6
"""Of the number of 32 segments; all functions together have fewer than 64 such blocks."""
TANH_UNITS = 10
UNITS = {Function.SIGMOID: (5, 8), Function.NORMAL_CDF: (6, 8)}
"""From how many units on the result is constant, for positive and for negative operands."""

OUTCOME = data.StructLayout({"sign": 1, "nan": 1, "special": 1, "nothing": 1, "one": 1})
"""Of a result: its sign, and what stands for a value: ``special``, infinity or with ``nan`` the NaN; ``nothing``, zero;
``one``, a power of two, which the exponent alone gives."""


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

    def _is(self, *functions: Function) -> Value:
        """Whether the code is one of these, of the functions of the chip."""
        here = [function for function in functions if function in self._functions]
        if len(here) == len(self._functions):
            return Const(1, 1)
        return Cat(self.code == function for function in here).any() if here else Const(0, 1)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i = Float32(self.i)
        is_log2, is_fixed = self._is(Function.LOG2), self._is(*FIXED)
        is_exp2, is_tanh = self._is(Function.EXP2), self._is(Function.TANH)
        is_rounding = self._is(*ROUNDING)

        # 1: unpack. A logarithm near 1 begins with the distance from 1, below it with twice of that.
        sign, exponent, some = (register(m, f"{name}_1", x) for name, x in self._unpacked(i).items())
        zero, special = register(m, "zero_1", i.is_zero()), register(m, "special_1", i.exponent.all())
        negate = is_log2 & (i.exponent == BIAS - 1)
        fraction = register(m, "fraction_1", ((i.fraction ^ negate.replicate(FRACTION_BITS)) + negate)[:FRACTION_BITS])
        top = BIAS + UNIT_BITS - 1 + Mux(self._is(Function.SIGMOID), 2, 0)
        distance = register(
            m, "distance_1", Mux(is_fixed, top - i.exponent, Mux(is_rounding, 32, UNIT_BITS - 1))[:9].as_signed()
        )

        integer: Value = Const(0, SIGNIFICAND_BITS + 1)
        if self._functions & set(ROUNDING):
            m.submodules.integer = part = IntegerPart()
            m.d.comb += [
                part.use.eq(is_rounding),
                part.down.eq(self._is(Function.FLOOR)),
                part.sign.eq(sign),
                part.exponent.eq(exponent),
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
        sign, exponent, some, zero, special = (
            register(m, f"{name}_2", x)
            for name, x in zip(
                ("sign", "exponent", "some", "zero", "special"), (sign, exponent, some, zero, special), strict=True
            )
        )
        for step in (4, 2, 1):
            shifted = Mux(low[step.bit_length() - 1], shifted >> step, shifted)
        mirror, below = ~is_exp2 & is_fixed, is_exp2 & sign
        upper = PLACE_BITS - FINE_BITS
        flips = Cat((below | mirror).replicate(upper), below.replicate(32 - upper))
        number = register(m, "number_3", shifted ^ flips)
        argument, zeros = self._argument(m, fraction)
        logarithm = self._logarithm(m, exponent, some)
        sign_3, exponent_3 = register(m, "sign_3", sign), register(m, "exponent_3", exponent)
        some_3, zero_3, special_3 = (
            register(m, f"{name}_3", x) for name, x in (("some", some), ("zero", zero), ("special", special))
        )

        # 4: choose
        unit, place = number[PLACE_BITS:], number[:PLACE_BITS]
        near, integer_below, scale, addend = logarithm
        fine = (near & is_log2) | (is_tanh & ~unit.any() & ~beyond)
        relative = fine & ~place[-2:].any()
        self._choose_segment(m, unit, place, fine, sign_3, exponent_3, integer_below, scale)
        coarse = Cat(place[upper:OFFSET_BITS] ^ mirror.replicate(OFFSET_BITS - upper)) & ~fine.replicate(2)
        t = Cat(place[:upper], coarse)
        zoom = FINE_BITS - COARSE_BITS
        m.d.sync += [
            self.inner.eq(Mux(fine, t[OFFSET_BITS - INNER_BITS - zoom : -zoom], t[OFFSET_BITS - INNER_BITS :])),
            self.w.eq(Mux(relative, Cat(Const(0, 2), argument), t) | Cat(Const(0, 1), integer)),
            self.addend.eq(addend & (is_log2 & ~near).replicate(7)),
        ]
        s_shaped = self._is(Function.SIGMOID, Function.NORMAL_CDF)
        m.d.sync += self.invert.eq(
            self._is(Function.RECIPROCAL, Function.RSQRT)
            | (is_tanh & ~relative)
            | (s_shaped & ~sign_3)
            | (is_log2 & ~near & integer_below)
        )
        self._choose_exponent(m, Cat(unit, sign_3), exponent_3, zeros, relative, zero_3)
        self._choose_outcome(m, unit, beyond, sign_3, zero_3, special_3, some_3, exponent_3)
        return m

    def _unpacked(self, i: Float32) -> dict[str, Value]:
        return {"sign": i.sign, "exponent": i.exponent, "some": i.fraction.any()}

    def _argument(self, m: Module, fraction: Value) -> tuple[Value, Value]:
        """The significand, or the normalised distance from 1 and its leading zeros but one, in stage 3."""
        value: Value = Cat(fraction, self._is(Function.TANH))
        zeros: Value = Const(0, 5)
        if Function.LOG2 in self._functions:
            found: list[Value] = []
            for stage, steps in ((2, (16, 8)), (3, (4, 2, 1))):
                for step in steps:
                    empty = ~value[-step:].any()
                    value = Mux(empty, Cat(Const(0, step), value[:-step]), value)
                    found.append(empty)
                value = register(m, f"argument_{stage}", value)
                found = [register(m, f"step_{stage}_{k}", x) for k, x in enumerate(found)]
            return value, Cat(*reversed(found))
        if Function.TANH in self._functions:
            value = register(m, "argument_3", register(m, "argument_2", value))
        return value, zeros

    def _logarithm(self, m: Module, exponent: Value, some: Value) -> tuple[Value, Value, Value, Value]:
        """Of stage 3: whether the operand is near 1, the integer part is negative, the place of its leading one, and
        what is added to c0. ``exponent`` and ``some`` are of stage 2."""
        if Function.LOG2 not in self._functions:
            return Const(0, 1), Const(0, 1), Const(0, 3), Const(0, 7)
        integer: Value = (exponent + 1)[:8]
        below = ~integer[7]
        near = register(m, "near_3", ((exponent == BIAS) | (exponent == BIAS - 1)) & some)
        value, steps = integer[:7], []
        for step in (4, 2, 1):  # at most 6 in all: the lowest bit counts as the leading one if there is none
            empty = ~(value[-step:] ^ below.replicate(step)).any()
            if step == 1:
                empty = empty & ~(steps[0] & steps[1])
            value = Mux(empty, Cat(Const(0, step), value[:-step]), value)
            steps.append(empty)
        scale = register(m, "scale_3", (6 - Cat(*reversed(steps)))[:3])
        return near, register(m, "integer_below_3", below), scale, register(m, "addend_3", value)

    def _choose_segment(
        self,
        m: Module,
        unit: Value,
        place: Value,
        fine: Value,
        sign: Value,
        exponent: Value,
        integer_below: Value,
        scale: Value,
    ) -> None:
        fine_block = Cat(place[-2:], integer_below & self._is(Function.LOG2))
        number: Value = Mux(self._is(*FIXED) & ~self._is(Function.EXP2), unit[:4], 0)
        number = Mux(self._is(Function.RSQRT, Function.SQRT), ~exponent[0], number)
        number = Mux(self._is(Function.LOG2), scale, number)
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
                        m.d.comb += offset.eq(Mux(sign, block + (regions[1].first >> COARSE_BITS), block))
                    else:
                        m.d.comb += offset.eq(block)
        low = FINE_BITS - COARSE_BITS
        m.d.sync += [
            self.segment.eq(Mux(fine, place[-FINE_BITS:-low], place[-COARSE_BITS:])),
            self.block.eq(Mux(fine, fine_block, number) + offset),
        ]

    def _choose_exponent(
        self, m: Module, integer: Value, exponent: Value, zeros: Value, relative: Value, zero: Value
    ) -> None:
        # BIAS less the exponent is its bits but the highest inverted, as a number in two's complement.
        inverse = Cat(~exponent[:7], exponent[7]).as_signed()
        half = inverse >> 1
        chosen, increment = Signal(signed(9)), Signal()
        with m.Switch(self.code):
            if Function.EXP2 in self._functions:
                with m.Case(Function.EXP2):
                    m.d.comb += chosen.eq(integer.as_signed())
            if Function.RECIPROCAL in self._functions:
                with m.Case(Function.RECIPROCAL):
                    m.d.comb += chosen.eq(inverse)
            if Function.RSQRT in self._functions:
                with m.Case(Function.RSQRT):
                    m.d.comb += [chosen.eq(half), increment.eq(inverse[0])]
            if Function.SQRT in self._functions:
                with m.Case(Function.SQRT):
                    m.d.comb += [chosen.eq(~half), increment.eq(~inverse[0])]
            if Function.TANH in self._functions:
                with m.Case(Function.TANH), m.If(relative):
                    m.d.comb += [chosen.eq(~inverse), increment.eq(1)]
            if Function.LOG2 in self._functions:  # the zeros are counted in 24 bits
                with m.Case(Function.LOG2), m.If(relative):
                    m.d.comb += [chosen.eq(~Cat(zeros, Const(0, 1)).as_signed()), increment.eq(1)]
            for function in sorted(self._functions & set(ROUNDING)):
                with m.Case(function), m.If(~is_below(exponent, BIAS)):
                    m.d.comb += [chosen.eq(~inverse), increment.eq(1)]
            for function in sorted(self._functions & set(UNITS)):
                with m.Case(function):
                    m.d.comb += chosen.eq(Mux(zero, -1, 0))
        m.d.sync += [self.exponent.eq(chosen), self.increment.eq(increment)]

    def _choose_outcome(
        self,
        m: Module,
        unit: Value,
        beyond: Value,
        sign: Value,
        zero: Value,
        special: Value,
        some: Value,
        exponent: Value,
    ) -> None:
        is_exp2, is_tanh, is_log2 = (self._is(f) for f in (Function.EXP2, Function.TANH, Function.LOG2))
        is_s, is_sqrt = self._is(*UNITS), self._is(Function.SQRT)
        inverse = self._is(Function.RECIPROCAL, Function.RSQRT)
        nan = (special & some) | (self._is(Function.LOG2, Function.RSQRT, Function.SQRT) & sign & ~zero)
        far: Value = Const(0, 1)
        for function, (above, below) in UNITS.items():
            far = far | (self._is(function) & Mux(sign, ~is_below(unit, below), ~is_below(unit, above)))
        far = beyond | far | (is_tanh & ~is_below(unit, TANH_UNITS))
        is_floor, is_round = self._is(Function.FLOOR), self._is(Function.ROUND)
        small, small_one = is_below(exponent, BIAS), (is_floor & sign & ~zero) | (is_round & (exponent == BIAS - 1) & some)
        is_one = is_log2 & (exponent == BIAS) & ~some
        signs = (sign & ~(is_exp2 | is_s | is_log2)) | (is_log2 & is_below(exponent, BIAS))
        m.d.sync += [
            self.outcome.nan.eq(nan),
            self.outcome.special.eq(
                nan
                | (is_exp2 & beyond & ~sign)
                | (inverse & zero)
                | ((is_sqrt | is_floor | is_round) & special)
                | (is_log2 & (zero | special))
            ),
            self.outcome.nothing.eq(
                (is_exp2 & beyond & sign)
                | (inverse & special)
                | (is_sqrt & zero)
                | is_one
                | (is_tanh & zero)
                | ((is_floor | is_round) & small & ~small_one)
                | (is_s & far & sign & ~zero)
            ),
            self.outcome.one.eq((small & small_one) | (is_tanh & far) | (is_s & (zero | (far & ~sign)))),
            self.outcome.sign.eq(signs),
        ]


def register(m: Module, name: str, value: Value) -> Signal:
    """The value of one cycle ago."""
    after = Signal.like(value, name=name, reset_less=True)
    m.d.sync += after.eq(value)
    return after
