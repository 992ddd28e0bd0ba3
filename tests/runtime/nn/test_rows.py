"""Softmax and norms: equal to the golden functions in every bit on the model, and on the gateware."""

import numpy as np
import pytest
from row_operands import CALLS, EPS, GOLDEN, WEIGHTED, agree, bits_of, extreme, normal, on

from sley.driver import BadRequest
from sley.runtime import Buffer, Device, ShapeMismatch, UnsupportedType, nn
from sley.runtime.device.buffer import BF16
from sley.sim.engines.options import default_engine

OPERATORS = ("softmax", *WEIGHTED)
SHAPES = [(1, 1), (1, 2), (3, 17), (16, 16), (17, 127), (16, 128), (33, 129), (5, 1000), (49, 256), (2, 1021)]
LONG = [(3, 1030), (17, 1365), (2, 1400), (1, 2501), (18, 4099)]
"""Beyond what the accumulators keep, and beyond a slot."""


@pytest.mark.some(24)
@pytest.mark.parametrize("shape", [*SHAPES, *LONG], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_equal_to_golden_on_the_model(base: Device, name: str, shape: tuple[int, int]) -> None:
    agree(base, name, normal(1, *shape))
    if name in WEIGHTED:
        agree(base, name, normal(2, *shape), weighted=True)


@pytest.mark.parametrize("name", OPERATORS)
def test_extremes(base: Device, name: str) -> None:
    agree(base, name, extreme(3, 64, 40))
    agree(base, name, normal(4, 16, 33, scale=1e38))
    agree(base, name, np.full((4, 5), 0xFF80, np.uint16))


@pytest.mark.parametrize("shape", [(1, 3), (70, 200), (65, 1100)], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_cores_share_the_groups(quad: Device, name: str, shape: tuple[int, int]) -> None:
    agree(quad, name, normal(5, *shape), weighted=name in WEIGHTED)


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
@pytest.mark.parametrize("name", OPERATORS)
def test_equal_to_golden_on_the_gateware(name: str) -> None:
    with Device.open("fast:base?memory=16M") as device:
        for shape in ((1, 1), (3, 17), (50, 130), (100, 16), (20, 1024), (2, 1400)):
            agree(device, name, normal(6, *shape), weighted=name in WEIGHTED)
        agree(device, name, extreme(7, 16, 40))


@pytest.mark.parametrize("name", OPERATORS)
def test_views(base: Device, name: str) -> None:
    """Rows any distance apart, more dimensions, and a result between other elements."""
    x, around = normal(8, 20, 100), normal(9, 20, 64)
    out = on(base, around)
    CALLS[name](on(base, x)[:, 3:40], out=out[:, 10:47])
    around[:, 10:47] = GOLDEN[name](np.ascontiguousarray(x[:, 3:40]))
    assert (bits_of(out) == around).all()
    cube = normal(10, 2, 3, 4, 9)
    assert (bits_of(CALLS[name](on(base, cube))) == GOLDEN[name](cube)).all()
    every_second = on(base, normal(11, 40, 19))[::2]
    assert (bits_of(CALLS[name](every_second)) == GOLDEN[name](normal(11, 40, 19)[::2])).all()


@pytest.mark.parametrize("name", OPERATORS)
def test_in_place(base: Device, name: str) -> None:
    x = normal(12, 40, 300)
    array = on(base, x)
    assert CALLS[name](array, out=array) is array
    assert (bits_of(array) == GOLDEN[name](x)).all()


def units(result: np.ndarray, right: np.ndarray, scale: np.ndarray) -> float:
    """The largest error in units in the last place of bf16 of ``scale``."""
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(scale), 2.0**-126))) - 7)
    return float(np.max(np.abs(result - right) / unit))


@pytest.mark.parametrize("k", [7, 300, 1024])
def test_error_against_float64(base: Device, k: int) -> None:
    """The bounds that the operators' documentation states."""
    x, w, b = normal(13, 64, k), normal(14, k), normal(15, k)
    wide, weight, bias = (value.view(BF16).astype(np.float64) for value in (x, w, b))
    array = on(base, x)

    def result(call: Buffer) -> np.ndarray:
        return call.numpy().astype(np.float64)

    power = np.exp(wide - wide.max(1, keepdims=True))
    right = power / power.sum(1, keepdims=True)
    assert units(result(nn.softmax(array)), right, right) <= 0.51
    centred = wide - wide.mean(1, keepdims=True)
    product = centred / np.sqrt((centred**2).mean(1, keepdims=True) + EPS) * weight
    right = product + bias
    scale = np.maximum(np.abs(product), np.abs(bias))
    assert (
        units(result(nn.layer_norm(array, on(base, w), on(base, b))), right, np.maximum(scale, np.abs(right))) <= 0.52
    )
    right = wide / np.sqrt((wide**2).mean(1, keepdims=True) + EPS) * weight
    assert units(result(nn.rms_norm(array, on(base, w), EPS)), right, right) <= 0.52


def test_a_large_mean_costs_nothing(base: Device) -> None:
    x = (1024 + 8 * np.random.default_rng(16).integers(0, 8, (8, 64))).astype(np.float32).astype(BF16)
    wide = x.astype(np.float64)
    right = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    assert np.max(np.abs(nn.layer_norm(base.array(x), eps=0).numpy().astype(np.float64) - right)) < 2.0**-7


def test_what_is_refused(base: Device) -> None:
    x = on(base, normal(17, 4, 6))
    with pytest.raises(UnsupportedType, match="x is ndarray; softmax takes arrays of the device"):
        nn.softmax(np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedType, match="float64"):
        nn.softmax(base.array(np.ones(3)))
    with pytest.raises(ShapeMismatch, match=r"weight has shape \(5,\); the last axis of x is 6: give \(6,\)"):
        nn.layer_norm(x, np.ones(5, BF16))
    with pytest.raises(ShapeMismatch, match=r"x has shape \(0, 3\); softmax needs one dimension or more"):
        nn.softmax(base.empty((0, 3), BF16))
    with pytest.raises(ShapeMismatch, match=r"the result is bfloat16 of shape \(4, 6\)"):
        nn.softmax(x, out=base.empty((4, 5), BF16))
    with pytest.raises(BadRequest, match="eps of layer_norm is -1; it must be a number of 0 or more"):
        nn.layer_norm(x, eps=-1)
    with pytest.raises(ShapeMismatch, match="axes of layer_norm are 3; x has 2: give 1 to 2"):
        nn.layer_norm(x, axes=3)
    with pytest.raises(BadRequest, match="out shares memory with x"):
        nn.softmax(x[:2], out=x[1:3])


def test_what_is_no_rows(base: Device) -> None:
    """Other types, axes and strides are tile kernels, whose results are as near."""
    x = normal(18, 4, 5, 6)
    wide = (x.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    powers = np.exp(wide)
    array = on(base, x)
    for found, right in (
        (nn.softmax(array, 1), powers / powers.sum(1, keepdims=True)),
        (nn.softmax(array[:, :3]), (powers / powers.sum(2, keepdims=True))[:, :3]),
    ):
        np.testing.assert_allclose(found.numpy().astype(np.float64), right, rtol=2.0**-8)
    found = nn.softmax(array.T).numpy().astype(np.float64)
    np.testing.assert_allclose(found, powers.T / powers.T.sum(-1, keepdims=True), rtol=2.0**-8)
    for name in ("layer_norm", "rms_norm"):
        plain = CALLS[name](array, np.ones(6, np.float32)).numpy().astype(np.float64)
        np.testing.assert_allclose(plain, CALLS[name](array).numpy().astype(np.float64), rtol=2.0**-7, atol=2.0**-9)


@pytest.mark.parametrize("chip", ["nano", "edge"])
def test_chips_without_chains(chip: str) -> None:
    with Device.open(f"model:{chip}?memory=1M") as device:
        x = device.empty((2, 2), BF16)
        with pytest.raises(UnsupportedType, match=f"the chip {chip} has .*: take base or quad"):
            nn.softmax(x)
