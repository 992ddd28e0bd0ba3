"""Layer norm and RMS norm as passes over rows."""

from dataclasses import replace
from fractions import Fraction

from sley.abi.functions.table import Function
from sley.abi.vector.chains import Chain, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.runtime.kernels.rows.passes import Pass, RowOperator, fp32, one_row

_MEAN, _SQUARES, _FACTOR = 1, 2, 3
"""Row registers."""


def layer_norm_operator(k: int, eps: float, weight: bool, bias: bool) -> RowOperator:
    """The mean, as the sum of the chunks' sums times 1 / k; the sum of (x - mean)^2;
    (x - mean) * rsqrt((sum + eps * k) / k), times weight, plus bias."""
    centred = Chain(binary=BinaryOp.SUB, binary_operand=Operand.ROW1)
    return RowOperator(
        "layer_norm",
        (
            Pass(Chain(multiply=Operand.SPLAT0, reduce=Reduction.SUM, register=_MEAN, silent=True), sums=True),
            Pass(
                replace(centred, multiply=Operand.X, reduce=Reduction.SUM, register=_SQUARES, silent=True),
                _root(_SQUARES),
            ),
            Pass(_scaled(weight, bias, centred)),
        ),
        _splats(k, eps),
        weight,
        bias,
    )


def rms_norm_operator(k: int, eps: float, weight: bool, direct: bool) -> RowOperator:
    """The sum of x^2; x * rsqrt((sum + eps * k) / k), times weight. ``direct``: the last pass takes rows as they lie,
    the factor of a matrix row from C and the weight from B."""
    squares = Chain(multiply=Operand.X, reduce=Reduction.SUM, register=_SQUARES, silent=True)
    root, last = _root(_SQUARES), _scaled(weight, False, Chain())
    if direct:
        root = replace(root, reduce=Reduction.NONE, register=0, silent=False)
        last = Chain(
            multiply=Operand.LATE0,
            late0=Late.C,
            late0_lanes=Lanes.BROADCAST,
            multiply2=Operand.LATE1 if weight else Operand.NONE,
            late1=Late.B,
        )
    return RowOperator("rms_norm", (Pass(squares, root), Pass(last)), _splats(k, eps), weight, direct=direct)


def _root(register: int) -> Chain:
    return one_row(register, _FACTOR, Chain(add=Operand.SPLAT1, multiply=Operand.SPLAT0, function=Function.RSQRT))


def _scaled(weight: bool, bias: bool, first: Chain) -> Chain:
    return replace(
        first,
        multiply=Operand.ROW3,
        multiply2=Operand.LATE0 if weight else Operand.NONE,
        binary2=BinaryOp.ADD if bias else BinaryOp.NONE,
        binary2_operand=Operand.LATE1 if bias else Operand.NONE,
        late0=Late.B,
        late0_lanes=Lanes.BROADCAST,
        late1=Late.C,
        late1_lanes=Lanes.BROADCAST,
    )


def _splats(k: int, eps: float) -> tuple[int, int]:
    return fp32(Fraction(1, k)), fp32(Fraction(eps) * k)
