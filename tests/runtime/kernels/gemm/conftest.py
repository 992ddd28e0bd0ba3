"""Fixtures of the tests of matrix multiplication."""

from collections.abc import Callable
from itertools import product

import pytest
from gemm_chips import chips

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.kernels.epilogue import Epilogue
from sley.sim.testing.product import ROOM_FOR_ROWS


@pytest.fixture(params=chips())
def config(request: pytest.FixtureRequest) -> ChipConfig:
    return request.param


@pytest.fixture
def epilogues() -> Callable[[ChipConfig, ElementType], list[Epilogue]]:
    """All epilogues that ``blas.gemm`` asks for; with a row of factors those that do not clip."""

    def of(config: ChipConfig, operands: ElementType) -> list[Epilogue]:
        integer = operands is ElementType.INT8
        results = [ElementType.INT8, ElementType.FP32, *([ElementType.BF16] if config.has(ElementType.BF16) else [])]
        found = [Epilogue()] if integer else []
        for result, bias, scale, relu, beta in product(results, *[(False, True)] * 4):
            if (scale or not integer) and not (beta and result is ElementType.INT8):
                rows = [False, True] if scale and not relu and config.accumulator_rows >= ROOM_FOR_ROWS else [False]
                found += [Epilogue(result, bias, scale, relu, beta, row) for row in rows]
        return found

    return of
