"""Views that have elements more than once, along axes with a stride of 0: operands like any other, and no results."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sley.driver import BadRequest
from sley.runtime import Buffer, Device, nn

BF16 = np.dtype(ml_dtypes.bfloat16)
VIEWS = [((3, 6), (0, 1)), ((6, 3), (1, 0)), ((2, 3, 6), (0, 0, 1)), ((2, 6, 3), (0, 1, 0))]
"""Shapes, and strides in elements."""


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with Device.open("model:base?memory=4M") as opened:
        yield opened


@pytest.fixture(params=VIEWS, ids=str)
def view(request: pytest.FixtureRequest, device: Device) -> Callable[[Any], Buffer]:
    """Makes such a view of an array of some type."""
    shape, strides = request.param

    def make(dtype: Any) -> Buffer:
        kind = np.dtype(dtype)
        values = np.array([3, -1, 4, 1, -5, 9], np.float32).astype(kind)
        return device.array(values).strided(shape, tuple(step * kind.itemsize for step in strides))

    return make


@pytest.mark.parametrize("dtype", [np.float32, BF16, np.int32], ids=str)
def test_reductions(view: Callable[[Any], Buffer], dtype: Any) -> None:
    x = view(dtype)
    wide = x.numpy().astype(np.float64)
    for axis in (*range(x.ndim), None):
        for function, right in ((nn.sum, np.sum), (nn.amax, np.max), (nn.amin, np.min)):
            assert (function(x, axis).numpy() == right(wide, axis=axis)).all(), (function.__name__, axis)
    for axis in range(x.ndim):
        assert (nn.argmax(x, axis).numpy() == wide.argmax(axis=axis)).all()


@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=str)
def test_norms_and_products(view: Callable[[Any], Buffer], dtype: Any) -> None:
    x, bound = view(dtype), 1e-5 if dtype is np.float32 else 2e-2
    wide = x.numpy().astype(np.float64)
    powers = np.exp(wide - wide.max(-1, keepdims=True))
    centred = wide - wide.mean(-1, keepdims=True)
    for found, right in (
        (nn.softmax(x, -1), powers / powers.sum(-1, keepdims=True)),
        (nn.layer_norm(x), centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)),
        (nn.matmul(x, x.mT), wide @ np.swapaxes(wide, -1, -2)),
        (nn.cumsum(x, -1), wide.cumsum(-1)),
        (nn.add(x, 1.0), wide + 1),
    ):
        np.testing.assert_allclose(found.numpy().astype(np.float64), right, rtol=bound, atol=bound)


def test_no_result(device: Device) -> None:
    out = device.zeros(6, np.float32).strided((3, 6), (0, 4))
    with pytest.raises(BadRequest, match="which has an element at several places; add writes each place once"):
        nn.add(device.zeros((3, 6), np.float32), 1.0, out=out)
