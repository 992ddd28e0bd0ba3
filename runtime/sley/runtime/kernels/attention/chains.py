"""The chains of an attention, and the values they take from splats."""

from dataclasses import dataclass

from sley.abi.functions.table import Function
from sley.abi.vector.chains import Chain, Condition, Operand
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.runtime.kernels.attention.problem import TILE_GROUPS, Problem

LOWEST = 0xFF7FFFFF
"""The running maximum before the first key: the lowest finite number."""
MINUS_INFINITY = 0xFF800000
"""As int32, -2^23: below all scores of int8."""
ONE = 0x3F800000
SPLATS = {"splat1": MINUS_INFINITY, "splat2": ONE, "splat3": LOWEST}
"""SPLAT0 is scale * log2(e). Of int8, SPLAT2 becomes the factor of results when ones are written, and SPLAT3 is what is
added to results."""
MAXIMUM = 0
"""The row register of the maximum; those behind it have the factors of the groups."""
RECIPROCAL = 1
"""The row register of what results are multiplied by: no factor is needed when a tile ends."""
_FACTORS = (Operand.ROW1, Operand.ROW2, Operand.ROW3)


@dataclass(frozen=True)
class Chains:
    """``highest``: score of a block. ``maximum``: of that and the one before. ``weights``: of scores. ``ones``,
    ``lowest``: constants. For each group ``factor``: of its sums; ``rescale``: sums by it. ``reciprocal``: of the sum
    of weights; ``result``: sums by it."""

    highest: Chain
    maximum: Chain
    weights: Chain
    factor: tuple[Chain, ...]
    rescale: tuple[Chain, ...]
    reciprocal: Chain
    result: Chain
    ones: Chain
    lowest: Chain

    @classmethod
    def of(cls, problem: Problem) -> "Chains":
        keep = Condition.IOTA_NEGATIVE if problem.causal else Condition.ALWAYS
        other = Operand.SPLAT1 if problem.causal else Operand.NONE
        rescale = tuple(Chain(multiply=factor) for factor in _FACTORS)
        reciprocal = Chain(function=Function.RECIPROCAL, reduce=Reduction.LAST, register=RECIPROCAL, silent=True)
        result, lowest = rescale[0], Operand.SPLAT3
        if problem.integers:
            reciprocal = Chain(
                function=Function.RECIPROCAL,
                multiply2=Operand.SPLAT2,
                reduce=Reduction.LAST,
                register=RECIPROCAL,
                silent=True,
            )
            result = Chain(multiply=_FACTORS[0], binary2=BinaryOp.ADD, binary2_operand=Operand.SPLAT3)
            lowest = Operand.SPLAT1
        return cls(
            highest=Chain(keep=keep, other=other, reduce=Reduction.MAX, register=MAXIMUM, silent=True),
            maximum=Chain(binary=BinaryOp.MAX, binary_operand=Operand.ROW0, reduce=Reduction.LAST, register=MAXIMUM),
            weights=Chain(
                binary=BinaryOp.SUB,
                binary_operand=Operand.ROW0,
                multiply=Operand.SPLAT0,
                keep=keep,
                other=other,
                function=Function.EXP2,
            ),
            factor=tuple(
                Chain(
                    binary=BinaryOp.SUB,
                    binary_operand=Operand.ROW0,
                    multiply=Operand.SPLAT0,
                    function=Function.EXP2,
                    reduce=Reduction.LAST,
                    register=group,
                    silent=True,
                )
                for group in range(1, TILE_GROUPS + 1)
            ),
            rescale=rescale,
            reciprocal=reciprocal,
            result=result,
            ones=Chain(binary=BinaryOp.SECOND, binary_operand=Operand.SPLAT2),
            lowest=Chain(binary=BinaryOp.SECOND, binary_operand=lowest),
        )
