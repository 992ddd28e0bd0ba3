"""What the vector unit does in attention of single tokens; a head is a lane."""

from __future__ import annotations

from dataclasses import replace

from sley.abi.functions.table import Function
from sley.abi.instructions import VectorRow
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp, Reduction

NOTHING, FACTOR, MAGNITUDE = Operand.SPLAT0, Operand.SPLAT1, Operand.SPLAT2
"""Minus infinity; what scores are multiplied by; all bits but the sign."""
HIGHER, FADED, FOUND, INVERSE = VectorRow.BIAS, VectorRow.SCALE, VectorRow.ROW2, VectorRow.ROW3
"""Row registers: the largest score so far; what results so far are multiplied by; what a reduction found; 1 / total."""

MASKED = Chain(
    keep=Condition.LATE0_NOT_ZERO,
    other=NOTHING,
    late0=Late.B,
    late0_lanes=Lanes.BROADCAST,
    reduce=Reduction.MAX,
    register=FOUND,
)
"""Scores of keys that there are, B a lane for each; the largest."""
THE_FOUND = Chain(binary=BinaryOp.SECOND, binary_operand=Operand.ROW2)
FIRST = replace(THE_FOUND, reduce=Reduction.LAST, register=HIGHER)
LARGER = replace(FIRST, binary=BinaryOp.MAX)
"""The largest score so far, to its row register, too."""
POWERS = Chain(
    binary=BinaryOp.SUB,
    binary_operand=Operand.ROW0,
    multiply=FACTOR,
    function=Function.EXP2,
    reduce=Reduction.SUM,
    register=FOUND,
)
POWER = replace(POWERS, reduce=Reduction.LAST, register=FADED)
TOTAL = Chain(multiply=Operand.ROW1, binary2=BinaryOp.ADD, binary2_operand=Operand.ROW2)
FADE = Chain(multiply=Operand.ROW1)
INVERTED = Chain(function=Function.RECIPROCAL, reduce=Reduction.LAST, register=INVERSE)
LAST_HEADS = Chain(multiply=Operand.ROW3, keep=Condition.IOTA_NEGATIVE)
"""Results; zeros in lanes behind those of all heads."""
HEADS = replace(LAST_HEADS, other=Operand.LATE1, late1=Late.B)
"""Results of heads in front of those in B."""
MAGNITUDES = Chain(binary=BinaryOp.AND, binary_operand=MAGNITUDE, reduce=Reduction.MAX, register=FOUND, silent=True)
ALL = (MASKED, THE_FOUND, FIRST, LARGER, POWER, POWERS, TOTAL, FADE, INVERTED, LAST_HEADS, HEADS, MAGNITUDES)
