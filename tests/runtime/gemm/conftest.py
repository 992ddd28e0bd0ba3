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
        for result, bias, scale, relu, beta in product(results, *[(False, True)] * 4):
            if (scale or not integer) and not (beta and result is Result.INT8):
                found.append(Epilogue(result, bias, scale, relu, beta))
        return found

    return of


@pytest.fixture
def put() -> Callable[[Device, np.ndarray], Buffer]:
    """Bit patterns on the device, as the type they stand for."""

    def array(device: Device, bits: np.ndarray) -> Buffer:
        return device.array(
            bits.view({np.dtype(np.uint16): BF16, np.dtype(np.uint32): np.float32}.get(bits.dtype, bits.dtype))
        )

    return array


@pytest.fixture
def check(put: Callable[[Device, np.ndarray], Buffer]) -> Callable[[Device, Product], None]:
    """One product by ``blas.gemm``, bit by bit; what lies behind the result stays untouched."""

    def run(device: Device, case: Product) -> None:
        expected = case.expected
        out = put(device, np.zeros_like(expected) if case.c is None else case.c)
        memory, behind, slack = device.context.space, out.address + out.nbytes, -out.nbytes % 64
        memory.write(behind, b"Z" * slack)
        blas.gemm(
            put(device, case.a),
            put(device, case.b),
            None if case.bias is None else put(device, case.bias),
            case.scale,
            case.relu,
            beta=case.beta,
            trans_a=case.trans_a,
            trans_b=case.trans_b,
            out=out,
        )
        np.testing.assert_array_equal(out.numpy().view(expected.dtype), expected, err_msg=str(case))
        assert memory.read(behind, slack) == b"Z" * slack, case

    return run
