"""What an operator does with rows: chains over all of them, and what joins their results between two passes."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp, Reduction

REGISTERS = (Operand.ROW0, Operand.ROW1, Operand.ROW2, Operand.ROW3)


@dataclass(frozen=True)
class Pass:
    """A chain over all rows. If it reduces them, the fold and then ``after``, a chain of one row, if there is one.

    ``sums``: its rows are fp32, each the sum of N rows, a chunk, which the matrix unit forms: its products with 1.
    """

    chain: Chain
    after: Chain | None = None
    sums: bool = False


@dataclass(frozen=True)
class RowOperator:
    """An operator on the rows of a matrix, whose elements along a row are rows of the vector unit.

    The last pass writes the result; those before are silent. Attributes: ``splats``: bit patterns of fp32, up to four.
    ``weight``: the last chain reads a value for each row by B; ``bias``: another one by C. ``keeps``: the last pass but
    one writes fp32 to the accumulators, and the last one takes its rows there. ``direct``: there are two passes; what
    is behind the first writes the numbers of the matrix rows to an accumulator row, and the last one takes rows as they
    lie.
    """

    name: str
    passes: tuple[Pass, ...]
    splats: tuple[int, ...] = ()
    weight: bool = False
    bias: bool = False
    keeps: bool = False
    direct: bool = False


def one_row(register: int, to: int, stages: Chain) -> Chain:
    """The chain that makes row register ``to`` of another one, by these stages."""
    return replace(
        stages,
        binary=BinaryOp.SECOND,
        binary_operand=REGISTERS[register],
        reduce=Reduction.LAST,
        register=to,
        silent=True,
    )


def fp32(value: float | Fraction) -> int:
    """The bit pattern of a number, rounded to fp32."""
    with np.errstate(over="ignore"):
        return int(np.float32(float(value)).view(np.uint32))
