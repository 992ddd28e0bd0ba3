"""The rotary embedding: equal to the golden function on the model and the gateware, its error, what it refuses."""

import numpy as np
import pytest
from row_operands import Bits, bits_of, extreme, normal, on

from sley.driver import BadRequest
from sley.runtime import Device, ShapeMismatch, nn
from sley.runtime.device.buffer import BF16
from sley.sim.engines.options import default_engine
from sley.sim.golden import nn as golden

SHAPES = [(1, 2), (3, 1, 4), (2, 5, 6), (7, 31, 10), (2, 3, 100, 64), (2, 300, 128)]


def agree(device: Device, x: Bits) -> None:
    table = nn.RotaryTable(device, *x.shape[-2:])
    right = golden.rotary(x, bits_of(table.cos), bits_of(table.sin))
    assert (bits_of(nn.rotary(on(device, x), table)) == right).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equal_to_golden_on_the_model(base: Device, quad: Device, shape: tuple[int, ...]) -> None:
    agree(base, normal(1, *shape))
    agree(quad, normal(2, *shape))


def test_extremes(base: Device) -> None:
    agree(base, extreme(3, 50, 40))


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
def test_equal_to_golden_on_the_gateware() -> None:
    with Device.open("fast:base?memory=16M") as device:
        for shape in SHAPES:
            agree(device, normal(4, *shape))


def test_angles_and_error(base: Device) -> None:
    """Position 0 stays; others are turned as complex numbers are, by the rounded cosines and sines."""
    x = normal(5, 2, 9, 16)
    table = nn.RotaryTable(base, 9, 16)
    array = on(base, x)
    assert nn.rotary(array, table, out=array) is array
    result = array.numpy().astype(np.float64)
    before = x.view(BF16).astype(np.float64)
    assert (result[:, 0] == before[:, 0]).all()
    angles = np.arange(9)[:, None] * 10_000.0 ** (-np.arange(8) / 8)
    turned = (before[..., ::2] + 1j * before[..., 1::2]) * np.exp(1j * angles)
    assert np.max(np.abs(result[..., ::2] + 1j * result[..., 1::2] - turned)) < 2.0**-7 * np.max(np.abs(turned))
    cos, sin = (array.numpy().astype(np.float64) for array in (table.cos, table.sin))
    products = np.stack([before * cos, sin * before.reshape(2, 9, 8, 2)[..., ::-1].reshape(2, 9, 16)])
    unit = 2.0 ** (np.floor(np.log2(np.abs(products).max(0))) - 7)
    assert np.max(np.abs(result - products.sum(0)) / unit) <= 1.01


def test_what_is_refused(base: Device) -> None:
    with pytest.raises(BadRequest, match="length is 3, size 5; length must be at least 1, size even"):
        nn.RotaryTable(base, 3, 5)
    table = nn.RotaryTable(base, 3, 4)
    with pytest.raises(ShapeMismatch, match=r"x has shape \(4, 4\), the table \(3, 4\)"):
        nn.rotary(on(base, normal(6, 4, 4)), table)
