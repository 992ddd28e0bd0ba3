"""Functions of single elements as chains: GELU in both forms, SiLU."""

import math
from dataclasses import dataclass

from sley.abi.functions.table import Function
from sley.abi.vector.chains import Chain, Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.kernels.rows.passes import fp32


@dataclass(frozen=True)
class Activation:
    """One or two chains, one after the other, on the same rows. The first of two writes fp32 to the accumulators, which
    are B of the second. Attributes: ``splats``: as of a ``RowOperator``."""

    name: str
    chains: tuple[Chain, ...]
    splats: tuple[int, ...] = ()


GELU = Activation("gelu", (Chain(function=Function.NORMAL_CDF, multiply2=Operand.LATE0, late0=Late.A),))
"""x * Phi(x)."""

SILU = Activation("silu", (Chain(function=Function.SIGMOID, multiply2=Operand.LATE0, late0=Late.A),))
"""x * sigmoid(x)."""

_OUTER = 2 * math.sqrt(2 / math.pi)

GELU_TANH = Activation(
    "gelu_tanh",
    (
        Chain(
            multiply=Operand.X,
            multiply2=Operand.SPLAT0,
            binary2=BinaryOp.ADD,
            binary2_operand=Operand.SPLAT1,
        ),
        Chain(
            multiply=Operand.LATE0,
            late0=Late.B,
            function=Function.SIGMOID,
            multiply2=Operand.LATE1,
            late1=Late.A,
        ),
    ),
    (fp32(_OUTER * 0.044715), fp32(_OUTER)),
)
"""x * sigmoid(x * (c * 0.044715 * x^2 + c)) with c = 2 * sqrt(2 / pi)."""
