"""What an operand alone says of the result of a function: its exponent but for the segment's, and special results."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data

from sley.abi.functions.table import Function
from sley.hw.fp.float32 import BIAS
from sley.hw.fp.function_operand import ROUNDING, TANH_UNITS, UNITS, Selection, is_below


def result_exponent(
    m: Module, selection: Selection, operand: data.View, integer: Value, zeros: Value, relative: Value
) -> tuple[Value, Value]:
    """The exponent of the result without that of the segment, and what is to be added to it. ``integer``: that of
    exp2; ``zeros``: before the leading one of a logarithm's distance from 1."""
    e = operand.exponent
    # BIAS less the exponent is its bits but the highest inverted, as a number in two's complement.
    inverse = Cat(~e[:7], e[7]).as_signed()
    half = inverse >> 1
    chosen, increment = Signal(signed(9)), Signal()
    with m.Switch(selection.code):
        if Function.EXP2 in selection.functions:
            with m.Case(Function.EXP2):
                m.d.comb += chosen.eq(integer.as_signed())
        if Function.RECIPROCAL in selection.functions:
            with m.Case(Function.RECIPROCAL):
                m.d.comb += chosen.eq(inverse)
        if Function.RSQRT in selection.functions:
            with m.Case(Function.RSQRT):
                m.d.comb += [chosen.eq(half), increment.eq(inverse[0])]
        if Function.SQRT in selection.functions:
            with m.Case(Function.SQRT):
                m.d.comb += [chosen.eq(~half), increment.eq(~inverse[0])]
        if Function.TANH in selection.functions:
            with m.Case(Function.TANH), m.If(relative):
                m.d.comb += [chosen.eq(~inverse), increment.eq(1)]
        if Function.LOG2 in selection.functions:  # the zeros are counted in 24 bits
            with m.Case(Function.LOG2), m.If(relative):
                m.d.comb += [chosen.eq(~Cat(zeros, Const(0, 1)).as_signed()), increment.eq(1)]
        for function in sorted(selection.functions & set(ROUNDING)):
            with m.Case(function), m.If(~is_below(e, BIAS)):
                m.d.comb += [chosen.eq(~inverse), increment.eq(1)]
        for function in sorted(selection.functions & set(UNITS)):
            with m.Case(function):
                m.d.comb += chosen.eq(Mux(operand.zero, -1, 0))
    return chosen, increment


def outcome(m: Module, result: data.View, selection: Selection, operand: data.View, unit: Value, beyond: Value) -> None:
    """Sets the register ``result``. ``beyond``: the operand has more units than ``unit`` holds."""
    e, sign, zero, special, some = operand.exponent, operand.sign, operand.zero, operand.special, operand.some
    is_exp2, is_tanh, is_log2 = (selection.of(f) for f in (Function.EXP2, Function.TANH, Function.LOG2))
    is_s, is_sqrt = selection.of(*UNITS), selection.of(Function.SQRT)
    inverse = selection.of(Function.RECIPROCAL, Function.RSQRT)
    nan = (special & some) | (selection.of(Function.LOG2, Function.RSQRT, Function.SQRT) & sign & ~zero)
    far: Value = Const(0, 1)
    for function, (above, below) in UNITS.items():
        far = far | (selection.of(function) & Mux(sign, ~is_below(unit, below), ~is_below(unit, above)))
    far = beyond | far | (is_tanh & ~is_below(unit, TANH_UNITS))
    is_floor, is_round = selection.of(Function.FLOOR), selection.of(Function.ROUND)
    small, small_one = is_below(e, BIAS), (is_floor & sign & ~zero) | (is_round & (e == BIAS - 1) & some)
    is_one = is_log2 & (e == BIAS) & ~some
    signs = (sign & ~(is_exp2 | is_s | is_log2)) | (is_log2 & is_below(e, BIAS))
    m.d.sync += [
        result.nan.eq(nan),
        result.special.eq(
            nan
            | (is_exp2 & beyond & ~sign)
            | (inverse & zero)
            | ((is_sqrt | is_floor | is_round) & special)
            | (is_log2 & (zero | special))
        ),
        result.nothing.eq(
            (is_exp2 & beyond & sign)
            | (inverse & special)
            | (is_sqrt & zero)
            | is_one
            | (is_tanh & zero)
            | ((is_floor | is_round) & small & ~small_one)
            | (is_s & far & sign & ~zero)
        ),
        result.one.eq((small & small_one) | (is_tanh & far) | (is_s & (zero | (far & ~sign)))),
        result.sign.eq(signs),
    ]
