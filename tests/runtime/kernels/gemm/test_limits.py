"""What no chip, or not this chip, can multiply: sentences that name value, bound and remedy."""

import pytest

from sley.abi.config import PRESETS
from sley.abi.types import ElementType
from sley.driver import BadRequest, OutOfDeviceMemory
from sley.runtime import ShapeMismatch, UnsupportedType
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm.limits import MAX_K, RESULTS, check_memory, check_problem, check_result, device_bytes
from sley.runtime.kernels.gemm.problem import Problem

INT8, UINT8, BF16 = ElementType.INT8, ElementType.UINT8, ElementType.BF16
INT32, FP32 = ElementType.INT32, ElementType.FP32


@pytest.mark.parametrize("name", PRESETS)
def test_what_each_chip_makes(name: str) -> None:
    """int32 of int8 alone; bf16, as operands or result, where the chip has it; uint8 with chains."""
    config = PRESETS[name]
    for operands in (INT8, BF16):
        for result in RESULTS:
            narrow = operands is INT8 and result is not INT32
            problem = Problem(3, 4, 5, operands, epilogue=Epilogue(result, bias=narrow, scale=narrow))
            possible = config.has(operands) and (result is not INT32 or operands is INT8)
            possible &= result is not BF16 or config.has(BF16)
            possible &= result is not UINT8 or UINT8 in config.vector_types
            if possible:
                check_problem(config, problem)
            else:
                with pytest.raises(UnsupportedType, match=rf"multiplies int8 only|the result is {result.info.numpy}"):
                    check_problem(config, problem)


def test_operands_of_another_chip() -> None:
    problem = Problem(1, 1, 1, BF16, epilogue=Epilogue(FP32))
    with pytest.raises(UnsupportedType, match="operands are bfloat16; the chip nano multiplies int8 only: convert"):
        check_problem(PRESETS["nano"], problem)


def test_results() -> None:
    base = PRESETS["base"]
    with pytest.raises(
        UnsupportedType, match="the result is float16; gemm makes int32, float32, int8, uint8, bfloat16"
    ):
        check_result(base, INT8, ElementType.FP16)
    with pytest.raises(UnsupportedType, match="the result is uint8; the chip nano has no chains: ask for int8"):
        check_result(PRESETS["nano"], INT8, UINT8, scaled=True)
    for operands, scaled in ((BF16, False), (INT8, True)):
        with pytest.raises(UnsupportedType, match="only sums of int8 without a scale are: ask for float32"):
            check_result(base, operands, INT32, scaled)
    with pytest.raises(UnsupportedType, match="the chip nano has no bf16: ask for float32"):
        check_result(PRESETS["nano"], INT8, BF16, scaled=True)


def test_depth() -> None:
    base = PRESETS["base"]
    check_problem(base, Problem(1, 1, MAX_K))
    with pytest.raises(ShapeMismatch, match=f"K is {MAX_K + 1}; above {MAX_K} int32 sums could wrap: split K"):
        check_problem(base, Problem(1, 1, MAX_K + 1))
    check_problem(base, Problem(1, 1, MAX_K + 1, BF16, epilogue=Epilogue(FP32)))


@pytest.mark.parametrize("size", [0, -1])
@pytest.mark.parametrize("name", ["M", "N", "K", "batch"])
def test_sizes(name: str, size: int) -> None:
    sizes = {"m": 1, "n": 1, "k": 1, "batch": 1} | {name.lower(): size}
    with pytest.raises(BadRequest, match=f"{name} is {size}; it must be at least 1"):
        check_problem(PRESETS["base"], Problem(**sizes))


def test_memory() -> None:
    problem = Problem(1000, 2000, 3000)
    needed = 1000 * 3000 + 2000 * 3000 + 4 * 1000 * 2000 + (1 << 16)
    assert device_bytes(problem) == needed
    check_memory(problem, needed)
    with pytest.raises(
        OutOfDeviceMemory, match=rf"1000 x 2000 x 3000 needs {needed:,} bytes .* {needed - 1:,} are free"
    ):
        check_memory(problem, needed - 1)
