"""What a chip can multiply: the checks of ``blas.gemm``, of the benches and of ``sley tune``."""

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.driver import BadRequest, OutOfDeviceMemory
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.sums_to_results import adds_zero_points

MAX_K = (1 << 31) // (128 * 128) - 1
"""Longest reduction of int8 whose int32 sum cannot wrap, whatever the operands."""

RESULTS = (ElementType.INT32, ElementType.FP32, ElementType.INT8, ElementType.UINT8, ElementType.BF16)

_BESIDES = 1 << 16
"""Bytes of device memory for a program, its arguments and alignment."""


def check_operands(config: ChipConfig, operands: ElementType) -> None:
    """Raises ``UnsupportedType`` for operands that the array does not multiply."""
    if not config.has(operands):
        known = " and ".join(kind.info.numpy for kind in config.operand_types)
        raise UnsupportedType(
            f"the operands are {operands.info.numpy}; the chip {config.name} multiplies {known} only: convert them, or "
            "take another chip"
        )


def check_depth(operands: ElementType, k: int) -> None:
    """Raises ``ShapeMismatch`` for a reduction whose int32 sums could wrap."""
    if operands is ElementType.INT8 and k > MAX_K:
        raise ShapeMismatch(f"K is {k}; above {MAX_K} int32 sums could wrap: split K and add the parts")


def check_result(config: ChipConfig, operands: ElementType, result: ElementType, scaled: bool = False) -> None:
    """Raises ``UnsupportedType`` for a result that is not made of such operands, or not by this chip."""
    if result not in RESULTS:
        raise unknown_result(result.info.numpy)
    if result is ElementType.INT32 and (operands is ElementType.BF16 or scaled):
        raise UnsupportedType("the result is int32; only sums of int8 without a scale are: ask for float32")
    if result is ElementType.UINT8 and result not in config.vector_types:
        raise UnsupportedType(f"the result is uint8; the chip {config.name} has no chains: ask for int8")
    if result is ElementType.BF16 and not config.has(ElementType.BF16):
        raise UnsupportedType(f"the result is bfloat16; the chip {config.name} has no bf16: ask for float32")


def check_zero_point(config: ChipConfig, result: ElementType, scaled: bool, zero_point: float) -> bool:
    """Whether there is one. Raises ``BadRequest`` for one that the result cannot have, ``UnsupportedType`` if the chip
    does not add it."""
    if not isinstance(zero_point, int | float) or zero_point != int(zero_point):
        raise BadRequest(f"zero_point is {zero_point!r}; it is an integer")
    if not zero_point:
        return False
    if result.bits != 8 or not scaled:
        raise BadRequest(
            f"zero_point is {zero_point}, the result {result.info.numpy}; it needs int8 or uint8 and a scale"
        )
    if not result.info.low <= zero_point <= result.info.high:
        raise BadRequest(f"zero_point is {zero_point}; that of {result.info.numpy} is one of its numbers")
    if not adds_zero_points(config):
        raise UnsupportedType(
            f"zero_point takes chains and round, which the chip {config.name} lacks: take base or quad"
        )
    return True


def unknown_result(name: str) -> UnsupportedType:
    """The error for a type that no product has. ``name``: numpy's."""
    known = ", ".join(kind.info.numpy for kind in RESULTS)
    return UnsupportedType(f"the result is {name}; gemm makes {known}: ask for one of them")


def check_problem(config: ChipConfig, problem: Problem) -> None:
    """All of these. Raises ``BadRequest`` for sizes below 1, too."""
    sizes = {"M": problem.m, "N": problem.n, "K": problem.k, "batch": problem.batch}
    for name, size in sizes.items():
        if size < 1:
            raise BadRequest(f"{name} is {size}; it must be at least 1")
    check_operands(config, problem.dtype)
    check_depth(problem.dtype, problem.k)
    check_result(config, problem.dtype, problem.epilogue.result, problem.epilogue.scale)


def device_bytes(problem: Problem) -> int:
    """Device memory that a product takes: operands, bias, scale, result, some for the program and for alignment."""
    values = 4 * problem.n * problem.epilogue.value_rows
    return problem.read_bytes + problem.written_bytes + values + _BESIDES


def check_memory(problem: Problem, free: int) -> None:
    """Raises ``OutOfDeviceMemory`` for a product that takes more than ``free`` bytes of it."""
    needed = device_bytes(problem)
    if needed > free:
        raise OutOfDeviceMemory(
            f"{problem.m} x {problem.n} x {problem.k} needs {needed:,} bytes of device memory, and {free:,} are free: "
            "take smaller sizes, or a device with more (memory=... in the engine URL)"
        )
