"""What the stages of the function unit share: fields of an operand, outcome of a result, which function it is."""

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data

from sley.abi.functions.table import Function

FIXED = (Function.EXP2, Function.TANH, Function.SIGMOID, Function.NORMAL_CDF)
"""Functions whose operand becomes a fixed-point number, with ``UNIT_BITS`` before the point."""
ROUNDING = (Function.FLOOR, Function.ROUND)
"""Functions that multiply a rounded significand by 1."""
UNIT_BITS = 7
TANH_UNITS = 10
UNITS = {Function.SIGMOID: (5, 8), Function.NORMAL_CDF: (6, 8)}
"""From how many units on the result is constant, for positive and for negative operands."""

OPERAND = data.StructLayout({"sign": 1, "exponent": 8, "some": 1, "zero": 1, "special": 1})
"""Of an operand: ``some``, its fraction is not 0; ``special``, it is infinite or a NaN."""
OUTCOME = data.StructLayout({"sign": 1, "nan": 1, "special": 1, "nothing": 1, "one": 1})
"""Of a result: its sign, and what stands for a value: ``special``, infinity or with ``nan`` the NaN; ``nothing``, zero;
``one``, a power of two, which the exponent alone gives."""


class Selection:
    """Which of the functions of a chip the code is."""

    def __init__(self, functions: Collection[Function], code: Value) -> None:
        self.functions = frozenset(functions)
        self.code = code

    def has(self, *functions: Function) -> bool:
        """Whether the chip has one of these."""
        return not self.functions.isdisjoint(functions)

    def of(self, *functions: Function) -> Value:
        """Whether the code is one of these; a constant if that is the same for all functions of the chip."""
        here = [function for function in functions if function in self.functions]
        if len(here) == len(self.functions):
            return Const(1, 1)
        return Cat(self.code == function for function in here).any() if here else Const(0, 1)


def register(m: Module, name: str, value: Value) -> Signal:
    """The value of one cycle ago."""
    after = Signal.like(value, name=name, reset_less=True)
    m.d.sync += after.eq(value)
    return after


def operands(m: Module, first: data.View, stages: int) -> list[data.View]:
    """The fields of an operand in each stage."""
    found = [first]
    for stage in range(1, stages + 1):
        after = Signal(OPERAND, name=f"operand_{stage}", reset_less=True)
        m.d.sync += after.eq(found[-1])
        found.append(after)
    return found


def is_below(value: Value, bound: int) -> Value:
    """value < bound, in LUTs: a comparison of few bits with a constant is smaller so than in a carry chain."""
    result: Value = Const(0, 1)
    for k, bit in enumerate(value):
        result = ~bit | result if bound >> k & 1 else ~bit & result
    return result if bound < 1 << len(value) else Const(1, 1)
