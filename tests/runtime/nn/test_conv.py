"""Convolutions of ``nn.conv2d`` on many chips, bit by bit against the golden function; and what users get wrong."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gemm_chips import chips

from sley.driver import BadRequest
from sley.runtime import Buffer, Device, ShapeMismatch, UnsupportedType, nn
from sley.runtime.device.buffer import BF16
from sley.runtime.kernels.gemm.limits import MAX_K
from sley.runtime.nn import weights as weights_file
from sley.sim.engines.options import default_engine
from sley.sim.testing.convolution import Convolution, random_convolution
from sley.sim.testing.product import SPECIAL

Put = Callable[[Device, np.ndarray], Buffer]
Check = Callable[[Device, Convolution], None]


@pytest.fixture
def check(put: Put, lay: Callable[..., Any]) -> Check:
    """Runs a convolution and compares every bit. Of every second one the arrays are views of larger ones, and what is
    around them stays."""

    def run(device: Device, case: Convolution) -> None:
        rng = np.random.default_rng(case.x.size)
        expected, views = case.expected(device.config), bool(rng.integers(2))
        x, out = lay(device, rng, case.x, rows=True), lay(device, rng, np.zeros_like(expected), rows=True)
        scale, residual = case.scale, None
        if case.residual is not None:
            residual = device.array(case.residual)
            if views:  # in memory as the result is
                steps = zip(expected.shape, out.view.strides, strict=True)
                held = device.empty((1 + sum((size - 1) * step for size, step in steps),), np.int8)
                residual = held.strided(expected.shape, out.view.strides)
                residual.write(case.residual)
        found = nn.conv2d(
            x.view if views else put(device, case.x),
            case.w.view(BF16) if case.w.dtype == np.uint16 else case.w,
            stride=case.stride,
            padding=case.padding,
            padding_value=case.padding_value,
            dilation=case.dilation,
            groups=case.groups,
            bias=None if case.bias is None else put(device, case.bias),
            scale=device.array(scale) if isinstance(scale, np.ndarray) else scale,
            relu=case.relu,
            residual=residual,
            residual_scale=case.residual_scale,
            dtype=case.result if case.result != "bfloat16" else BF16,
            out=out.view if views else None,
        )
        if views:
            out.expect(expected, str(case))
        else:
            np.testing.assert_array_equal(found.numpy().view(expected.dtype), expected, err_msg=str(case))

    return run


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 12))])
def test_random(device: Device, check: Check, seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(device, random_convolution(device.config, rng, largest=12 if device.config.array == 4 else 20))


@pytest.mark.some(13)
@pytest.mark.parametrize("taps", [(1, 1), (3, 3), (1, 7), (5, 2), (11, 11)], ids=str)
def test_windows(device: Device, check: Check, taps: tuple[int, int]) -> None:
    """Windows larger than the image among them, and one that no small scratchpad holds."""
    rng = np.random.default_rng(sum(taps))
    n, deep = device.config.array, device.config.fold_depth()
    for channels in ((1, 1), (3, n + 1), (deep + 1, 2)):
        padding = ((taps[0] // 2, taps[0] - 1), (taps[1] - 1, taps[1] // 2))
        check(
            device,
            random_convolution(
                device.config, rng, image=(1, 5, 9), taps=taps, channels=channels, groups=1, padding=padding
            ),
        )


@pytest.mark.some(20)
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 1), (1, 3)], ids=str)
@pytest.mark.parametrize("dilation", [(1, 1), (2, 3)], ids=str)
def test_steps(device: Device, check: Check, stride: tuple[int, int], dilation: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    for groups in (1, 3):
        check(
            device,
            random_convolution(device.config, rng, image=(1, 13, 11), stride=stride, dilation=dilation, groups=groups),
        )


@pytest.mark.some(8)
@pytest.mark.parametrize("size", [1, 2, 17])
def test_more_padding_than_pixels(device: Device, check: Check, size: int) -> None:
    """Some outputs see nothing but zeros, along one axis or both."""
    rng = np.random.default_rng(size)
    for taps, stride in (((3, 3), (1, 1)), ((1, 1), (2, 3)), ((2, 4), (3, 2))):
        image, padding = (2, size, 18 - size), ((5, 9), (8, 3))
        for channels in ((2, 3), (device.config.fold_depth() + 3, 2)):
            check(
                device,
                random_convolution(
                    device.config,
                    rng,
                    image=image,
                    taps=taps,
                    stride=stride,
                    dilation=(1, 1),
                    padding=padding,
                    channels=channels,
                    groups=1,
                ),
            )


@pytest.mark.parametrize("outputs", [1, 2])
def test_depthwise(device: Device, check: Check, outputs: int) -> None:
    rng = np.random.default_rng(outputs)
    deep = device.config.fold_depth()
    for groups in (2, deep - 1, deep, deep + 1, 2 * deep + 3):
        check(
            device,
            random_convolution(
                device.config, rng, image=(2, 6, 7), taps=(3, 3), channels=(1, outputs), groups=groups, dilation=(1, 1)
            ),
        )


def test_few_channels(device: Device, check: Check) -> None:
    """Taps of a row as channels of one: windows inside, at the borders, and beside the image."""
    for seed, padding in enumerate((((0, 0), (0, 0)), ((3, 3), (3, 3)), ((1, 0), (9, 8)))):
        rng = np.random.default_rng(seed)
        case = random_convolution(
            device.config,
            rng,
            image=(2, 9, 12),
            taps=(7, 7),
            channels=(3, 5),
            groups=1,
            stride=(2, 1 + seed),
            dilation=(1, 1),
            padding=padding,
            bf16=False,
        )
        check(device, case)
        check(device, replace(case, x=np.ascontiguousarray(case.x[..., :1]), w=np.ascontiguousarray(case.w[:, :, :1])))


def test_extreme_values_do_not_wrap(device: Device) -> None:
    x, w = np.full((1, 4, 4, 40), -128, np.int8), np.full((3, 3, 40, 3), -128, np.int8)
    found = nn.conv2d(device.array(x), w).numpy()
    assert (found == 9 * 40 * 128 * 128).all()


@pytest.mark.parametrize("config", chips(needs_bf16=True), indirect=True)
def test_special_bf16_values(device: Device, check: Check) -> None:
    """Infinities, NaNs, subnormals and zeros of both signs, beside zeros of the padding and of other groups."""
    rng = np.random.default_rng(3)
    for groups in (1, 2):
        case = random_convolution(
            device.config, rng, image=(1, 6, 5), taps=(3, 2), channels=(5, 3), groups=groups, bf16=True
        )
        check(device, replace(case, x=rng.choice(SPECIAL, case.x.shape), w=rng.choice(SPECIAL, case.w.shape)))


@pytest.mark.parametrize(
    "engine",
    ["fast:nano", *(pytest.param(name, marks=pytest.mark.slow) for name in ("fast:base", "fast:quad"))]
    if default_engine() == "fast"
    else [],
)
def test_on_the_gateware(engine: str, check: Check) -> None:
    """The compiled gateware gives what the model gives, on several cores also with loads that they share."""
    with Device.open(f"{engine}?memory=4M", hang_cycles=200_000) as device:
        for seed in range(10):
            check(device, random_convolution(device.config, np.random.default_rng(seed), largest=14))


def test_weights_are_packed_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, packed = np.random.default_rng(1), list[object]()
    real = weights_file.pack
    monkeypatch.setattr(weights_file, "pack", lambda *given: packed.append(given) or real(*given))
    x = device.array(rng.integers(-128, 128, (1, 6, 6, 40), np.int8))
    weights = nn.ConvWeights(device, rng.integers(-128, 128, (3, 3, 40, 6), np.int8))
    first = nn.conv2d(x, weights, padding=1).numpy()
    count = len(packed)
    again = nn.conv2d(x, weights, padding=1).numpy()
    assert np.array_equal(first, again)
    assert count == len(packed) > 0


def test_a_graph(device: Device) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.integers(-128, 128, (1, 7, 7, 3), np.int8), rng.integers(-128, 128, (3, 3, 3, 8), np.int8)
    image, weights = device.array(np.zeros_like(x)), nn.ConvWeights(device, w)
    out = nn.conv2d(image, weights, padding=1, scale=0.01)
    with device.stream.capture() as graph:
        nn.conv2d(image, weights, padding=1, scale=0.01, out=out)
    image.write(x)
    graph.launch()
    expected = Convolution(x, w, "int8", padding=((1, 1), (1, 1)), scale=0.01).expected(device.config)
    assert np.array_equal(out.numpy(), expected)


# What users get wrong


@pytest.fixture
def nano() -> Iterator[Device]:
    with Device.open("model:nano?memory=1M") as opened:
        yield opened


Ones = Callable[..., Buffer]


@pytest.fixture
def image(nano: Device) -> Ones:
    """Makes arrays of ones on the device."""
    return lambda *shape, dtype=np.int8: nano.array(np.ones(shape, dtype))


def test_wrong_type(nano: Device, image: Ones) -> None:
    x, w = image(1, 4, 4, 2), np.ones((3, 3, 2, 2), np.int8)
    with pytest.raises(UnsupportedType, match=r"x is ndarray; .* device.array"):
        nn.conv2d(np.ones((1, 4, 4, 2), np.int8), w)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedType, match=r"w is float64; conv2d multiplies int8 or bfloat16: .* astype"):
        nn.conv2d(x, np.ones((3, 3, 2, 2)))
    with pytest.raises(UnsupportedType, match=r"x is int8 and w bfloat16; both .* use astype"):
        nn.conv2d(x, w.astype(BF16))
    with pytest.raises(UnsupportedType, match="the operands are bfloat16; the chip nano multiplies int8 only"):
        nn.conv2d(image(1, 4, 4, 2, dtype=BF16), w.astype(BF16))
    with pytest.raises(UnsupportedType, match="bias is float64; it must be int32"):
        nn.conv2d(x, w, bias=np.ones(2), scale=1.0)
    with pytest.raises(UnsupportedType, match="scale is float64; it must be float32"):
        nn.conv2d(x, w, scale=np.ones(2))
    with pytest.raises(UnsupportedType, match="the result is int32"):
        nn.conv2d(x, w, scale=1.0, dtype=np.int32)
    with pytest.raises(BadRequest, match="scale is 'a'; it must be a number, or a float32 for each of 2 outputs"):
        nn.conv2d(x, w, scale="a")  # type: ignore[arg-type]


def test_wrong_shape(nano: Device, image: Ones) -> None:
    x, w = image(1, 4, 4, 2), np.ones((3, 3, 2, 2), np.int8)
    with pytest.raises(ShapeMismatch, match=r"x has shape \(4, 4, 2\); images are \[images, y, x, channels\]"):
        nn.conv2d(image(4, 4, 2), w)
    with pytest.raises(ShapeMismatch, match=r"w has shape \(3, 3, 2\); weights are \[taps y"):
        nn.conv2d(x, np.ones((3, 3, 2), np.int8))
    with pytest.raises(ShapeMismatch, match="w has 3 channels and x 2 in 1 groups: it must have 2"):
        nn.conv2d(x, np.ones((3, 3, 3, 2), np.int8))
    with pytest.raises(ShapeMismatch, match="groups is 3; it must be a positive number that divides the 2 channels"):
        nn.conv2d(x, w, groups=3)
    with pytest.raises(ShapeMismatch, match=r"the window is 5 pixels along y, the image .* 4: pad it by at least 1"):
        nn.conv2d(x, w, dilation=2)
    with pytest.raises(ShapeMismatch, match=r"bias has shape \(3,\); the result has 2 outputs"):
        nn.conv2d(x, w, bias=np.ones(3, np.int32), scale=1.0)
    with pytest.raises(ShapeMismatch, match=r"the result is int32 of shape \(1, 2, 2, 2\)"):
        nn.conv2d(x, w, out=nano.empty((1, 4, 4, 2), np.int32))


def test_wrong_steps(nano: Device, image: Ones) -> None:
    x, w = image(1, 4, 4, 2), np.ones((3, 3, 2, 2), np.int8)
    with pytest.raises(BadRequest, match="stride is 0; it must be at least 1"):
        nn.conv2d(x, w, stride=0)
    with pytest.raises(BadRequest, match=r"dilation is \(1, 2, 3\); give an integer, or a tuple of two"):
        nn.conv2d(x, w, dilation=(1, 2, 3))  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="padding is -1; it must be at least 0"):
        nn.conv2d(x, w, padding=-1)
    with pytest.raises(BadRequest, match=r"padding is \(1,\); give one number"):
        nn.conv2d(x, w, padding=(1,))  # type: ignore[arg-type]


def test_wrong_arrays(nano: Device, image: Ones) -> None:
    x, w = image(1, 4, 4, 2), np.ones((3, 3, 2, 2), np.int8)
    with pytest.raises(BadRequest, match="bias and relu need a scale"):
        nn.conv2d(x, w, relu=True)
    with pytest.raises(BadRequest, match="the channels of a pixel must be contiguous"):
        nn.conv2d(image(1, 2, 4, 4).transpose(0, 2, 3, 1), w)
    one = image(1, 4, 4, 2)
    with pytest.raises(BadRequest, match="out shares memory with x"):
        nn.conv2d(one, np.ones((1, 1, 2, 2), np.int8), scale=1.0, out=one)
    with pytest.raises(BadRequest, match="could wrap"):
        nn.conv2d(x, w, bias=np.full(2, 2**31 - 1, np.int32), scale=1.0)
    with Device.open("model:nano?memory=1M") as other:
        with pytest.raises(BadRequest, match="w lives on another device"):
            nn.conv2d(x, nn.ConvWeights(other, w))
        with pytest.raises(BadRequest, match="lives on another device"):
            nn.conv2d(x, w, out=other.empty((1, 2, 2, 2), np.int32))


def test_sums_that_could_wrap(nano: Device) -> None:
    deep = MAX_K // 9 + 1
    with pytest.raises(ShapeMismatch, match="int32 sums could wrap"):
        nn.conv2d(nano.empty((1, 3, 3, deep), np.int8), np.zeros((3, 3, deep, 1), np.int8))


@pytest.fixture
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=8M", hang_cycles=20_000) as opened:
        yield opened


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("outputs", [5, 16, 40])
def test_residuals(base: Device, check: Check, groups: int, outputs: int) -> None:
    """Macro tiles that do not come out even, several images, one and two column tiles in a row of the scratchpad."""
    seen = 0
    for seed in range(8):
        rng = np.random.default_rng(100 * outputs + seed)
        case = random_convolution(
            base.config, rng, channels=(7, outputs), groups=groups, bf16=False, result="int8", largest=30
        )
        seen += case.residual is not None
        check(base, case)
    assert seen


def test_residuals_that_are_refused(base: Device) -> None:
    x, w = base.array(np.ones((1, 4, 4, 3), np.int8)), np.ones((1, 1, 3, 5), np.int8)
    residual = base.array(np.ones((1, 4, 4, 5), np.int8))
    with pytest.raises(BadRequest, match="a residual is for int8 operands and results, and no relu"):
        nn.conv2d(x, w, scale=0.1, residual=residual, relu=True)
    with pytest.raises(BadRequest, match="a residual is for int8 operands and results"):
        nn.conv2d(x, w, scale=0.1, residual=residual, dtype=np.float32)
    with pytest.raises(ShapeMismatch, match="they have one shape, type and strides"):
        nn.conv2d(x, w, scale=0.1, residual=base.array(np.ones((1, 4, 5, 5), np.int8)))
    out = base.empty((1, 4, 4, 5), np.int8)
    with pytest.raises(BadRequest, match="out shares memory with residual"):
        nn.conv2d(x, w, scale=0.1, residual=out, out=out)
    with Device.open("model:nano?memory=1M") as nano:
        arrays = nano.array(np.ones((1, 4, 4, 3), np.int8)), nano.array(np.ones((1, 4, 4, 5), np.int8))
        with pytest.raises(BadRequest, match="a residual takes chains, and the chip nano has none"):
            nn.conv2d(arrays[0], w, scale=0.1, residual=arrays[1])


def test_padding_values_that_are_refused(base: Device) -> None:
    w = np.ones((3, 3, 3, 5), np.int8)
    with pytest.raises(BadRequest, match="padding_value is 128; images of int8 take -128 to 127"):
        nn.conv2d(base.array(np.ones((1, 4, 4, 3), np.int8)), w, padding=1, padding_value=128)
    floats = base.array(np.ones((1, 4, 4, 3), np.float32))
    with pytest.raises(BadRequest, match="those of floats 0 alone"):
        nn.conv2d(floats, w.astype(np.float32), padding=1, padding_value=3)
