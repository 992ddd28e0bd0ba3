"""Fixtures of the tests of matrix multiplication."""

from collections.abc import Callable
from itertools import product

import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.types import ElementType
from sley.runtime.kernels.gemm.problem import Epilogue

CHIPS = [
    *(PRESETS[name] for name in ("nano", "edge", "quad")),
    ChipConfig(
        name="one_bank",
        operand_types=("int8", "bf16"),
        vector_lanes=1,
        scratchpad_rows=64,
        scratchpad_banks=1,
        accumulator_rows=16,
        accumulator_banks=1,
        unit_queue=2,
    ),
    ChipConfig(name="square", cores_x=2, cores_y=2),
]
MORE_CHIPS = [
    PRESETS["base"],
    ChipConfig(name="int8_16", array=16, scratchpad_rows=256, accumulator_rows=64, program_words=512),
    ChipConfig(name="row_of_3", array=8, cores_x=3, scratchpad_rows=128, accumulator_rows=32, queues=1),
]


@pytest.fixture(
    params=[*CHIPS, *(pytest.param(chip, marks=pytest.mark.slow) for chip in MORE_CHIPS)], ids=lambda c: c.name
)
def config(request: pytest.FixtureRequest) -> ChipConfig:
    return request.param


@pytest.fixture
def epilogues() -> Callable[[ChipConfig, ElementType], list[Epilogue]]:
    """All epilogues that ``blas.gemm`` asks for."""

    def of(config: ChipConfig, operands: ElementType) -> list[Epilogue]:
        integer = operands is ElementType.INT8
        results = [ElementType.INT8, ElementType.FP32, *([ElementType.BF16] if config.has(ElementType.BF16) else [])]
        found = [Epilogue()] if integer else []
        for result, bias, scale, relu, beta in product(results, *[(False, True)] * 4):
            if (scale or not integer) and not (beta and result is ElementType.INT8):
                found.append(Epilogue(result, bias, scale, relu, beta))
        return found

    return of
