"""What the vector unit does in attention of single tokens; a head is a lane."""

from __future__ import annotations

from sley.abi.functions.table import Function
from sley.abi.instructions import VectorRow
from sley.abi.vector.chains import Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp, Reduction

NOTHING, FACTOR = Operand.SPLAT0, Operand.SPLAT1
"""Minus infinity; what scores are multiplied by."""
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
LARGER = Chain(binary=BinaryOp.MAX, binary_operand=Operand.ROW2)
POWER = Chain(binary=BinaryOp.SUB, binary_operand=Operand.ROW0, multiply=FACTOR, function=Function.EXP2)
POWERS = Chain(
    binary=BinaryOp.SUB,
    binary_operand=Operand.ROW0,
    multiply=FACTOR,
    function=Function.EXP2,
    reduce=Reduction.SUM,
    register=FOUND,
)
TOTAL = Chain(multiply=Operand.ROW1, binary2=BinaryOp.ADD, binary2_operand=Operand.ROW2)
FADE = Chain(multiply=Operand.ROW1)
INVERTED = Chain(function=Function.RECIPROCAL)
RESULT = Chain(multiply=Operand.ROW3)
ALL = (MASKED, THE_FOUND, LARGER, POWER, POWERS, TOTAL, FADE, INVERTED, RESULT)
