"""What a logarithm needs of its operand besides the place: the distance from 1, normalised, and the integer part."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import data

from sley.abi.functions.table import Function
from sley.hw.fp.float32 import BIAS
from sley.hw.fp.function_operand import Selection, register


@dataclass(frozen=True)
class IntegerPart:
    """Of a logarithm. ``near``: the operand is in [0.5, 2) and no power of two. ``below``: the part is negative.
    ``scale``: the place of its leading one, or of that of its complement. ``addend``: what is added to c0."""

    near: Value
    below: Value
    scale: Value
    addend: Value


def normalised(m: Module, selection: Selection, fraction: Value) -> tuple[Value, Value]:
    """The significand of tanh, or a logarithm's distance from 1 shifted up and its leading zeros among 24 bits; two
    stages."""
    value: Value = Cat(fraction, selection.of(Function.TANH))
    found: list[Value] = []
    for stage, steps in enumerate(((16, 8), (4, 2, 1))):
        for step in steps if selection.has(Function.LOG2) else ():
            empty = ~value[-step:].any()
            value = Mux(empty, Cat(Const(0, step), value[:-step]), value)
            found.append(empty)
        if selection.has(Function.LOG2, Function.TANH):
            value = register(m, f"normalised_{stage}", value)
        found = [register(m, f"step_{stage}_{k}", x) for k, x in enumerate(found)]
    return value, Cat(*reversed(found)) if found else Const(0, 5)


def integer_part(m: Module, selection: Selection, operand: data.View) -> IntegerPart:
    """Of an operand; one stage."""
    if not selection.has(Function.LOG2):
        return IntegerPart(Const(0, 1), Const(0, 1), Const(0, 3), Const(0, 7))
    exponent = operand.exponent
    integer: Value = (exponent + 1)[:8]
    below = ~integer[7]
    value, steps = integer[:7], list[Value]()
    for step in (4, 2, 1):  # at most 6 in all: the lowest bit counts as the leading one if there is none
        empty = ~(value[-step:] ^ below.replicate(step)).any()
        if step == 1:
            empty = empty & ~(steps[0] & steps[1])
        value = Mux(empty, Cat(Const(0, step), value[:-step]), value)
        steps.append(empty)
    return IntegerPart(
        near=register(m, "near", ((exponent == BIAS) | (exponent == BIAS - 1)) & operand.some),
        below=register(m, "integer_below", below),
        scale=register(m, "scale", (6 - Cat(*reversed(steps)))[:3]),
        addend=register(m, "addend", value),
    )
