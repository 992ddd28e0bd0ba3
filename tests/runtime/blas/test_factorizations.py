"""Cholesky and QR: products of the factors against the matrix, in float64, and what users get wrong."""

from collections.abc import Iterator

import numpy as np
import pytest

from sley.driver import BadRequest
from sley.runtime import Device, ShapeMismatch, UnsupportedType, blas

RANDOM = np.random.default_rng(3)


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=16M") as device:
        yield device


def positive(size: int) -> np.ndarray:
    root = RANDOM.standard_normal((size, size + 3))
    return (root @ root.T).astype(np.float32)


@pytest.mark.parametrize(("size", "block"), [(1, 4), (5, 8), (17, 4), (33, 16)])
def test_cholesky(base: Device, size: int, block: int) -> None:
    a = positive(size)
    above = np.triu(a) + np.tril(np.full_like(a, 1e30), -1)  # nobody looks below
    given = base.array(above)
    found = blas.cholesky(given, block=block).numpy().astype(np.float64)
    assert np.array_equal(given.numpy(), above)
    assert np.array_equal(np.triu(found, 1), np.zeros_like(found))
    assert (found.diagonal() > 0).all()
    assert np.abs(found @ found.T - a).max() <= 4e-6 * np.abs(a).max()
    np.testing.assert_allclose(found, np.linalg.cholesky(a.astype(np.float64)), atol=1e-4 * np.sqrt(np.abs(a).max()))


def test_what_is_not_positive_definite_is_nan(base: Device) -> None:
    a = positive(6)
    a[3, 3] = -1
    found = blas.cholesky(base.array(a)).numpy()
    assert np.isfinite(found[:3, :3]).all()
    assert np.isnan(found[3, 3])


@pytest.mark.parametrize(
    ("shape", "block"), [((1, 1), 4), ((7, 5), 2), ((12, 12), 5), ((19, 9), 8), ((6, 17), 4), ((40, 3), 32)]
)
def test_qr(base: Device, shape: tuple[int, int], block: int) -> None:
    a = RANDOM.standard_normal(shape).astype(np.float32)
    given = base.array(a)
    q, r = (part.numpy().astype(np.float64) for part in blas.qr(given, block=block))
    count = min(shape)
    assert (q.shape, r.shape) == ((shape[0], count), (count, shape[1]))
    assert np.array_equal(given.numpy(), a)
    assert np.array_equal(np.tril(r[:, :count], -1), np.zeros((count, count)))
    assert np.abs(q @ r - a).max() <= 1e-5 * np.abs(a).max()
    assert np.abs(q.T @ q - np.eye(count)).max() <= 1e-5
    right = np.linalg.qr(a.astype(np.float64))[1]
    signs = np.sign(right.diagonal() * r.diagonal())
    assert (signs[: min(shape[0] - 1, count)] == 1).all()
    np.testing.assert_allclose(r * signs[:, None], right, atol=2e-4)


def test_columns_of_zeros(base: Device) -> None:
    a = RANDOM.standard_normal((9, 6)).astype(np.float32)
    a[:, 2] = 0
    a[:, 4] = a[:, 1]
    q, r = (part.numpy().astype(np.float64) for part in blas.qr(base.array(a), block=4))
    assert np.abs(q @ r - a).max() <= 1e-5
    assert np.abs(q.T @ q - np.eye(6)).max() <= 1e-5


def test_mistakes(base: Device) -> None:
    square = base.array(np.eye(3, dtype=np.float32))
    with pytest.raises(ShapeMismatch, match=r"a has shape \(2, 3\); it is \[n, n\]"):
        blas.cholesky(square[:2])
    with pytest.raises(UnsupportedType, match="a is int32; qr takes float32 of the device"):
        blas.qr(base.array(np.eye(3, dtype=np.int32)))
    with pytest.raises(UnsupportedType, match="a is ndarray; cholesky takes float32"):
        blas.cholesky(np.eye(3, dtype=np.float32))  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="block is 0; it is a number of rows, 1 or more"):
        blas.qr(square, block=0)
    with pytest.raises(ShapeMismatch, match="qr takes a matrix"):
        blas.qr(square[0])
