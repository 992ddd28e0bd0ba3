"""Fixtures of the tests of matrix multiplication."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.instructions import OperandType
from sley.runtime import blas
from sley.runtime.buffer import BF16, Buffer
from sley.runtime.device import Device
from sley.runtime.gemm.problem import Epilogue, Result
from sley.sim.testing.product import Product

ODD_CHIPS = [
    ChipConfig(name="int8_16", array=16, scratchpad_rows=256, accumulator_rows=64, program_words=512),
    ChipConfig(
        name="one_bank",
        bf16=True,
        scratchpad_rows=64,
        scratchpad_banks=1,
        accumulator_rows=16,
        accumulator_banks=1,
        unit_queue=2,
    ),
    ChipConfig(name="row_of_3", array=8, cores_x=3, scratchpad_rows=128, accumulator_rows=32, queues=1),
]


@pytest.fixture(params=[*PRESETS.values(), *ODD_CHIPS], ids=lambda c: c.name)
def config(request: pytest.FixtureRequest) -> ChipConfig:
    return request.param


@pytest.fixture
def epilogues() -> Callable[[ChipConfig, OperandType], list[Epilogue]]:
    """All epilogues that ``blas.gemm`` asks for."""

    def of(config: ChipConfig, operands: OperandType) -> list[Epilogue]:
        integer = operands is OperandType.INT8
        results = [Result.INT8, Result.FP32, *([Result.BF16] if config.bf16 else [])]
        found = [Epilogue()] if integer else []
        for result, bias, scale, relu in product(results, *[(False, True)] * 3):
            if scale or not integer:
                found.append(Epilogue(result, bias, scale, relu))
        return found

    return of


@pytest.fixture
def arrays() -> Callable[[Device, Product], list[Buffer]]:
    """A and B on the device, and the bias if there is one."""

    def put(device: Device, case: Product) -> list[Buffer]:
        views = [x.view(BF16) if x.dtype == np.uint16 else x for x in (case.a, case.b)]
        if case.bias is not None:
            views.append(case.bias.view(np.float32) if case.bias.dtype == np.uint32 else case.bias)
        return [device.array(view) for view in views]

    return put


@pytest.fixture
def check(arrays: Callable[[Device, Product], list[Buffer]]) -> Callable[[Device, Product], None]:
    """One product by ``blas.gemm``, bit by bit; what lies behind the result stays untouched."""

    def run(device: Device, case: Product) -> None:
        expected = case.expected
        out = device.empty(expected.shape, BF16 if case.result == "bfloat16" else np.dtype(case.result))
        memory, behind, slack = device.driver.transport, out.address + out.nbytes, -out.nbytes % 64
        memory.write_memory(behind, b"Z" * slack)
        blas.gemm(
            *arrays(device, case),
            scale=case.scale,
            relu=case.relu,
            trans_a=case.trans_a,
            trans_b=case.trans_b,
            out=out,
        )
        np.testing.assert_array_equal(out.numpy().view(expected.dtype), expected, err_msg=str(case))
        assert memory.read_memory(behind, slack) == b"Z" * slack, case

    return run
