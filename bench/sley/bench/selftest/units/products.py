"""Cases of the matrix unit: each operand type, accumulation, walks over weights and activations."""

from collections.abc import Iterator

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.types import ElementType
from sley.bench.selftest.units.case import ACCUMULATOR, SCRATCHPAD, Bed, Case

STEPS = 4


def product_cases(config: ChipConfig) -> Iterator[Case]:
    """Random bytes as operands: of bf16 they are NaN, infinities and subnormals, too."""
    for dtype in config.operand_types:
        name = dtype.info.name

        def overwrite(bed: Bed, dtype: ElementType = dtype) -> None:
            _weights(bed, dtype, bed.config.array)
            _multiply(bed, dtype)

        def few_weights(bed: Bed, dtype: ElementType = dtype) -> None:
            bed.k.set(Unit.MATRIX, weight_stride=-1)
            _weights(bed, dtype, bed.config.array - 1, bed.config.array)
            _multiply(bed, dtype)

        def accumulate(bed: Bed, dtype: ElementType = dtype) -> None:
            for first in (0, 1):
                _weights(bed, dtype, bed.config.array, first)
                _multiply(bed, dtype, accumulate=True)

        def walk(bed: Bed, dtype: ElementType = dtype) -> None:
            _weights(bed, dtype, bed.config.array)
            bed.k.set(Unit.MATRIX, act_stride=2, act_count=2, act_stride2=-1, act_count2=2, act_stride3=3)
            _multiply(bed, dtype, source=1)

        yield Case("matrix", f"{name}, overwrites", overwrite)
        yield Case("matrix", f"{name}, fewer weights, upwards", few_weights)
        yield Case("matrix", f"{name}, accumulates", accumulate)
        yield Case("matrix", f"{name}, walk of three levels", walk)


def _weights(bed: Bed, dtype: ElementType, rows: int, first: int = 0) -> None:
    bed.step(bed.k.weights, bed.row(f"weights{first}", first), rows, dtype=dtype)


def _multiply(bed: Bed, dtype: ElementType, source: int = 0, accumulate: bool = False) -> None:
    rows = min(bed.half[ACCUMULATOR], bed.half[SCRATCHPAD], 2 * STEPS)
    with bed.k.scratch("from to") as (first, target):
        bed.k.mov(first, source)
        bed.k.mov(target, bed.half[ACCUMULATOR])
        bed.step(bed.k.matmul, first, target, rows, dtype=dtype, accumulate=accumulate)
