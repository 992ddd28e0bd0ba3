"""Zero points and results of uint8 of products and convolutions: bit for bit, round(sum · scale) + zero, saturated."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sley.driver import BadRequest
from sley.runtime import Device, UnsupportedType, blas, nn

KINDS = [(np.int8, 0), (np.int8, -128), (np.int8, 127), (np.uint8, 0), (np.uint8, 131), (np.uint8, 255)]


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=16M") as device:
        yield device


def expected(sums: Any, scale: Any, kind: Any, zero: int, relu: bool) -> Any:
    real = sums.astype(np.float32) * np.asarray(scale, np.float32)
    rounded = np.rint(np.maximum(real, 0) if relu else real).astype(np.float64) + zero
    return np.clip(rounded, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)


@pytest.mark.parametrize(("kind", "zero"), KINDS)
@pytest.mark.parametrize("form", ["plain", "bias", "rows", "bias, rows and relu"])
def test_products(base: Device, kind: Any, zero: int, form: str) -> None:
    rng = np.random.default_rng(abs(zero))
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((37, 70), (70, 45)))
    bias = rng.integers(-9000, 9000, 45).astype(np.int32) if "bias" in form else None
    scale: Any = rng.uniform(1e-4, 1e-2, 45).astype(np.float32) if "rows" in form else 0.001953125  # ties, too
    found = blas.gemm(
        base.array(a), base.array(b), bias, scale, "relu" in form, zero_point=zero, dtype=np.dtype(kind)
    ).numpy()
    sums = a.astype(np.int64) @ b + (0 if bias is None else bias)
    assert found.dtype == kind
    np.testing.assert_array_equal(found, expected(sums, scale, kind, zero, "relu" in form))


@pytest.mark.parametrize(("kind", "zero"), KINDS)
@pytest.mark.parametrize("relu", [False, True])
def test_convolutions(base: Device, kind: Any, zero: int, relu: bool) -> None:
    """An odd image, outputs that are no multiple of N, padding with a zero point, a scale for each output."""
    rng = np.random.default_rng(abs(zero) + 1)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 7, 5, 19), (3, 3, 19, 21)))
    bias, scale = rng.integers(-9000, 9000, 21).astype(np.int32), rng.uniform(1e-4, 3e-3, 21).astype(np.float32)
    more: Any = {"padding": 1, "padding_value": -7, "stride": (2, 1)}
    found = nn.conv2d(
        base.array(x), w, bias=bias, scale=scale, relu=relu, zero_point=zero, dtype=np.dtype(kind), **more
    ).numpy()
    sums = nn.conv2d(base.array(x), w, **more).numpy().astype(np.int64) + bias
    assert found.dtype == kind
    np.testing.assert_array_equal(found, expected(sums, scale, kind, zero, relu))


def test_uint8_without_a_zero_point(base: Device) -> None:
    a, b = (np.random.default_rng(2).integers(-128, 128, (20, 20)).astype(np.int8) for _ in range(2))
    found = blas.gemm(base.array(a), base.array(b), scale=0.004, dtype=np.uint8).numpy()
    np.testing.assert_array_equal(found, expected(a.astype(np.int64) @ b, 0.004, np.uint8, 0, False))
    assert found.max() > 127


def test_bad_input(base: Device) -> None:
    a = base.array(np.ones((4, 4), np.int8))
    with pytest.raises(BadRequest, match=r"zero_point is 0\.5; it is an integer"):
        blas.gemm(a, a, scale=1.0, zero_point=0.5)
    with pytest.raises(BadRequest, match="zero_point is 128; that of int8 is one of its numbers"):
        blas.gemm(a, a, scale=1.0, zero_point=128)
    with pytest.raises(BadRequest, match="zero_point is -1; that of uint8"):
        blas.gemm(a, a, scale=1.0, zero_point=-1, dtype=np.uint8)
    with pytest.raises(BadRequest, match="the result float32; it needs int8 or uint8 and a scale"):
        blas.gemm(a, a, scale=1.0, zero_point=3, dtype=np.float32)
    images = base.array(np.ones((1, 4, 4, 4), np.int8))
    with pytest.raises(BadRequest, match="zero_point beside a residual"):
        nn.conv2d(images, np.ones((1, 1, 4, 4), np.int8), scale=1.0, zero_point=3, residual=images)
    with Device.open("model:edge?memory=8M") as edge:
        a = edge.array(np.ones((4, 4), np.int8))
        with pytest.raises(UnsupportedType, match="takes chains and round, which the chip edge lacks"):
            blas.gemm(a, a, scale=1.0, zero_point=3)
        with pytest.raises(UnsupportedType, match="the result is uint8; the chip edge has no chains"):
            blas.gemm(a, a, scale=1.0, dtype=np.uint8)
