"""Softmax as passes over rows."""

import math
from dataclasses import replace

from sley.abi.functions.table import Function
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.runtime.kernels.rows.passes import Pass, RowOperator, fp32, one_row

_LARGEST, _SUM, _FACTOR = 0, 1, 2
"""Row registers."""


def softmax_operator(keeps: bool) -> RowOperator:
    """The maximum; the sum of 2^((x - maximum) * log2(e)); the same powers times the reciprocal of the sum. ``keeps``:
    the powers are kept, else they are computed again, with the same result."""
    power = Chain(binary=BinaryOp.SUB, binary_operand=Operand.ROW0, multiply=Operand.SPLAT0, function=Function.EXP2)
    last = Chain(multiply=Operand.ROW2) if keeps else replace(power, multiply2=Operand.ROW2)
    return RowOperator(
        "softmax",
        (
            Pass(Chain(reduce=Reduction.MAX, register=_LARGEST, silent=True)),
            Pass(
                replace(power, reduce=Reduction.SUM, register=_SUM, silent=not keeps),
                one_row(_SUM, _FACTOR, Chain(function=Function.RECIPROCAL)),
            ),
            Pass(last),
        ),
        splats=(fp32(math.log2(math.e)),),
        keeps=keeps,
    )
