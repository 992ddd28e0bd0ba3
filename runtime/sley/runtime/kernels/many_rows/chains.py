"""What the vector unit does to the sums of a product of many rows."""

from __future__ import annotations

from dataclasses import replace

from sley.abi.functions.table import Function
from sley.abi.vector.chains import Chain, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.kernels.many_rows.problem import Ending, ManyRows, Source

UNIT, MAGNITUDE, FIRST, SECOND = Operand.SPLAT0, Operand.SPLAT1, Operand.SPLAT2, Operand.SPLAT3
"""Numbers: what a unit of a high part is worth; all bits but the sign; two for the statistics of a band."""
FACTORS, NORMS = Operand.ROW1, Operand.ROW2
"""Row registers: scales of outputs; magnitudes of weights of a norm."""

HIGH = Chain(multiply=UNIT)
JOINED = Chain(binary2=BinaryOp.ADD, binary2_operand=Operand.LATE0, late0=Late.B)
SCALED = Chain(multiply=Operand.LATE0, multiply2=FACTORS, late0=Late.B, late0_lanes=Lanes.BROADCAST)
"""Sums times the scale of their token, B a lane for each, times those of the outputs."""
SCALED_BY_ROWS = replace(SCALED, late0_lanes=Lanes.OWN)
"""The same, B a row for each."""
SILU = Chain(function=Function.SIGMOID, multiply2=Operand.LATE0, late0=Late.A)
TIMES = Chain(multiply=Operand.LATE0, late0=Late.B)
PLUS = Chain(binary=BinaryOp.ADD, binary_operand=Operand.B)
MINUS = Chain(binary=BinaryOp.SUB, binary_operand=Operand.B)
LARGER = Chain(binary=BinaryOp.MAX, binary_operand=Operand.B)
ZERO = Chain(binary=BinaryOp.XOR, binary_operand=Operand.B)
"""Of rows that A and B both are."""
PEAK = Chain(
    binary=BinaryOp.AND,
    binary_operand=MAGNITUDE,
    binary2=BinaryOp.MAX,
    binary2_operand=Operand.LATE0,
    late0=Late.B,
)
NORM_PEAK = Chain(
    binary=BinaryOp.AND,
    binary_operand=MAGNITUDE,
    multiply=NORMS,
    binary2=BinaryOp.MAX,
    binary2_operand=Operand.LATE0,
    late0=Late.B,
)
SQUARES = Chain(multiply=Operand.X, binary2=BinaryOp.ADD, binary2_operand=Operand.LATE0, late0=Late.B)
FOLD_SUM = Chain(binary2=BinaryOp.ADD, binary2_operand=Operand.LATE0, late0=Late.A, late0_lanes=Lanes.EXCHANGE)
FOLD_LARGER = Chain(binary2=BinaryOp.MAX, binary2_operand=Operand.LATE0, late0=Late.A, late0_lanes=Lanes.EXCHANGE)
MEAN = Chain(multiply=FIRST, binary2=BinaryOp.ADD, binary2_operand=SECOND)
SCALE = Chain(multiply=FIRST, binary2=BinaryOp.MAX, binary2_operand=SECOND)
INVERSE = Chain(function=Function.RECIPROCAL)
ROOT_TIMES = Chain(function=Function.RSQRT, multiply2=Operand.LATE0, late0=Late.B)
AS_IT_IS = Chain()
SPREAD = Chain(
    binary=BinaryOp.SECOND,
    binary2=BinaryOp.ADD,
    binary2_operand=Operand.LATE0,
    late0=Late.B,
    late0_lanes=Lanes.BROADCAST,
)
"""Lane r of B in all lanes of row r."""
UNITS = Chain(multiply=Operand.LATE0, late0=Late.B)
NORMED_UNITS = Chain(multiply=Operand.LATE0, multiply2=FACTORS, late0=Late.B)
LOW = Chain(multiply=UNIT, binary2=BinaryOp.ADD, binary2_operand=Operand.LATE0, late0=Late.B)
"""A token times its inverse scale; what is left of it without the high part."""

_OF_SOURCES = {
    Source.INT8: (),
    Source.FLOATS: (SPREAD, UNITS),
    Source.NORMED: (SPREAD, NORMED_UNITS),
    Source.HEADS: (LARGER, FOLD_LARGER, SCALE, INVERSE, UNITS),
}

_OF_ENDINGS = {
    Ending.SCALED: (),
    Ending.TURNED: (TIMES, MINUS, PLUS, AS_IT_IS),
    Ending.CACHED: (TIMES, MINUS, PLUS, AS_IT_IS),
    Ending.GATED: (SILU, TIMES, PEAK, LARGER, FOLD_LARGER, SCALE, INVERSE, ZERO),
    Ending.ADDED: (
        JOINED,
        SQUARES,
        NORM_PEAK,
        LARGER,
        FOLD_LARGER,
        SCALE,
        INVERSE,
        FOLD_SUM,
        MEAN,
        ROOT_TIMES,
        ZERO,
    ),
}


def chains_of(problem: ManyRows, clears: bool) -> tuple[Chain, ...]:
    """All of a program, which are written once, in front of its loops; whether it clears statistics."""
    source = _OF_SOURCES[problem.source]
    ending = tuple(chain for chain in _OF_ENDINGS[problem.ending] if clears or chain is not ZERO)
    low = ((LOW,) if problem.parts == 2 else (AS_IT_IS,)) if source else ()
    joined = (HIGH, JOINED) if problem.parts == 2 else ()
    return tuple(dict.fromkeys((*source, *joined, *low, scaled(problem), *ending)))


def scaled(problem: ManyRows) -> Chain:
    """The chain that multiplies by scales."""
    return SCALED_BY_ROWS if problem.source is Source.HEADS else SCALED
