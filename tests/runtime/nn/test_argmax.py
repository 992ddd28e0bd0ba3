"""Argmax: as numpy's in every case, on the model and the gateware."""

import numpy as np
import pytest
from row_operands import Bits, extreme, normal, on

from sley.driver import BadRequest
from sley.runtime import Device, ShapeMismatch, nn
from sley.runtime.device.buffer import BF16
from sley.sim.engines.options import default_engine

SHAPES = [(1, 1), (3, 17), (16, 16), (33, 129), (20, 1024), (2, 1400), (17, 3001), (2, 3, 5)]


def right(x: Bits) -> np.ndarray:
    """By numpy, of the numbers without their subnormals."""
    flushed = np.where(x & 0x7F80 == 0, 0, x).astype(np.uint32) << np.uint32(16)
    return np.argmax(flushed.view(np.float32), -1)


def agree(device: Device, x: Bits) -> None:
    result = nn.argmax(on(device, x)).numpy()
    assert result.dtype == np.int32
    assert (result == right(x)).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equal_to_numpy_on_the_model(base: Device, quad: Device, shape: tuple[int, ...]) -> None:
    agree(base, normal(1, *shape))
    agree(quad, normal(2, *shape))


def test_extremes_and_equal_elements(base: Device) -> None:
    agree(base, extreme(3, 200, 40))
    agree(base, np.zeros((3, 20), np.uint16))
    agree(base, np.full((3, 1500), 0xFF80, np.uint16))
    agree(base, np.full((3, 1500), 0x7FC0, np.uint16))
    agree(base, np.random.default_rng(4).choice(np.array([0, 0x8000, 0x8001, 0xBF80], np.uint16), (40, 30)))


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
def test_equal_to_numpy_on_the_gateware() -> None:
    with Device.open("fast:base?memory=16M") as device:
        for shape in SHAPES:
            agree(device, normal(5, *shape))
        agree(device, extreme(6, 50, 40))


def test_views_and_what_is_refused(base: Device) -> None:
    x, out = normal(7, 20, 50), base.zeros(20, np.int32)
    nn.argmax(on(base, x)[:, 3:40], out=out)
    assert (out.numpy() == right(x[:, 3:40])).all()
    with pytest.raises(ShapeMismatch, match=r"the result is int32 of shape \(20,\)"):
        nn.argmax(on(base, x), out=base.empty((20, 50), BF16))
    with pytest.raises(BadRequest, match="the result of argmax is contiguous"):
        nn.argmax(on(base, x), out=base.zeros((20, 2), np.int32)[:, 0])
