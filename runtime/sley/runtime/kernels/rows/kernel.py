"""Programs of operators that reduce along the rows of a matrix; docs/theory/nn.md explains them."""

from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.runtime.device.program import Program
from sley.runtime.kernels.rows.direct import Direct
from sley.runtime.kernels.rows.passes import RowOperator
from sley.runtime.kernels.rows.resident import Resident
from sley.runtime.kernels.rows.shape import Placement, Rows
from sley.runtime.kernels.rows.streamed import Streamed


@lru_cache(maxsize=256)
def row_program(config: ChipConfig, operator: RowOperator, shape: Rows) -> Program:
    """The program; its arguments are the addresses of x, the result and the temporary array, then of weight and bias,
    if it has them."""
    if operator.direct:
        return Direct(config, operator, shape).program
    kernel = Resident if _place(config, operator, shape).resident else Streamed
    return kernel(config, operator, shape).program


def temporary_rows(config: ChipConfig, operator: RowOperator, shape: Rows) -> int:
    """Rows of N elements of the temporary array, for all blocks."""
    return 1 if operator.direct else _place(config, operator, shape).piece * shape.blocks


def keeps(config: ChipConfig, k: int) -> bool:
    """Whether k rows of fp32 can be kept in the accumulators from pass to pass, without weight and bias."""
    return k <= config.accumulator_rows and Placement.of(config, k, 0).resident


def _place(config: ChipConfig, operator: RowOperator, shape: Rows) -> Placement:
    return Placement.of(config, shape.k, operator.weight + operator.bias)
