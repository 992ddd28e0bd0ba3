"""The golden product with its epilogue, on numbers that every step keeps exactly."""

from itertools import product

import numpy as np
import pytest

from sley.abi.types import ElementType
from sley.sim.golden import float32
from sley.sim.golden.gemm import gemm


def bits_of(values: np.ndarray, result: str) -> np.ndarray:
    """A result of that type from numbers that it holds."""
    if result in ("int8", "int32"):
        return np.clip(values, -128, 127).astype(np.int8) if result == "int8" else values.astype(np.int32)
    bits = float32.to_bits(values)
    return float32.to_bf16(bits) if result == "bfloat16" else bits


@pytest.mark.parametrize("operands", ["int8", "bfloat16"])
@pytest.mark.parametrize(("trans_a", "trans_b"), list(product([False, True], repeat=2)))
def test_product_and_epilogue(operands: str, trans_a: bool, trans_b: bool) -> None:
    """Each of bias, scale, beta and relu, alone and with the others, for each type of result."""
    rng = np.random.default_rng(trans_a + 2 * trans_b)
    a, b = rng.integers(-3, 4, (5, 6)), rng.integers(-3, 4, (6, 4))
    integer = operands == "int8"
    left, right = (bits_of(x.T if t else x, operands) for x, t in ((a, trans_a), (b, trans_b)))
    rows = np.array([2, 1, 4, 8], np.float32)
    bias, old = rng.integers(-8, 8, 4), rng.integers(-5, 6, (5, 4))
    for has_bias, scale, beta, relu in product([False, True], [None, 2.0, rows], [None, 0.5, -2.0], [False, True]):
        for result in ("int8", "int32", "float32", "bfloat16"):
            if result == "int32" and (not integer or scale is not None or beta is not None):
                continue
            if (result == "int8" and beta is not None) or ElementType.of(result) is None:
                continue  # what the result held before is read as fp32 or bf16
            sums = a @ b + has_bias * bias
            expected = sums * (1 if scale is None else scale) + (0 if beta is None else beta * old)
            got = gemm(
                left,
                right,
                result,
                trans_a=trans_a,
                trans_b=trans_b,
                bias=None if not has_bias else bias.astype(np.int32) if integer else float32.to_bits(bias),
                scale=scale,
                beta=beta,
                c=None if beta is None else bits_of(old, result),
                relu=relu,
            )
            expected = bits_of(np.maximum(expected, 0) if relu else expected, result)
            np.testing.assert_array_equal(got + 0, expected + 0, err_msg=f"{result} {has_bias} {scale} {beta} {relu}")


def test_batches() -> None:
    """One matrix serves the whole batch, or each product has its own; what was before has its place in the batch."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(-3, 4, (3, 5, 6)).astype(np.int8), rng.integers(-3, 4, (6, 4)).astype(np.int8)
    old = rng.integers(-5, 6, (3, 5, 4))
    np.testing.assert_array_equal(gemm(a, b, "int32"), a.astype(np.int32) @ b)
    got = gemm(a, b, "float32", beta=0.5, c=float32.to_bits(old))
    np.testing.assert_array_equal(float32.to_float(got), a.astype(np.int32) @ b + 0.5 * old)
