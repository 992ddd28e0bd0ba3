"""The chains of an attention, and the values they take from splats."""

from dataclasses import dataclass

from sley.abi.functions.table import Function
from sley.abi.vector.chains import Chain, Condition, Operand
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.runtime.kernels.attention.problem import TILE_GROUPS

LOWEST = 0xFF7FFFFF
"""The running maximum before the first key: the lowest finite number."""
MINUS_INFINITY = 0xFF800000
ONE = 0x3F800000
SPLATS = {"splat1": MINUS_INFINITY, "splat2": ONE, "splat3": LOWEST}
"""SPLAT0 is scale * log2(e)."""
MAXIMUM = 0
"""The row register of the maximum; those behind it have the factors of the groups."""
_FACTORS = (Operand.ROW1, Operand.ROW2, Operand.ROW3)


@dataclass(frozen=True)
class Chains:
    """``highest``: score of a block. ``maximum``: of that and the one before. ``weights``: of scores. ``ones``,
    ``lowest``: constants. For each group ``factor``: of its sums; ``rescale``: sums by it; ``reciprocal``: of the sum
    of weights."""

    highest: Chain
    maximum: Chain
    weights: Chain
    factor: tuple[Chain, ...]
    rescale: tuple[Chain, ...]
    reciprocal: tuple[Chain, ...]
    ones: Chain
    lowest: Chain

    @classmethod
    def of(cls, causal: bool) -> "Chains":
        keep = Condition.IOTA_NEGATIVE if causal else Condition.ALWAYS
        other = Operand.SPLAT1 if causal else Operand.NONE
        groups = range(1, TILE_GROUPS + 1)
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
                for group in groups
            ),
            rescale=tuple(Chain(multiply=_FACTORS[group - 1]) for group in groups),
            reciprocal=tuple(
                Chain(function=Function.RECIPROCAL, reduce=Reduction.LAST, register=group, silent=True)
                for group in groups
            ),
            ones=Chain(binary=BinaryOp.SECOND, binary_operand=Operand.SPLAT2),
            lowest=Chain(binary=BinaryOp.SECOND, binary_operand=Operand.SPLAT3),
        )

    def all(self) -> tuple[Chain, ...]:
        """Each of them."""
        one = (self.highest, self.maximum, self.weights, self.ones, self.lowest)
        return (*one, *self.factor, *self.rescale, *self.reciprocal)
