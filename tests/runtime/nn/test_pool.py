"""Pooling of ``nn`` on many chips, bit by bit against the golden function; and what users get wrong."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gemm_chips import chips

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.driver import BadRequest
from sley.runtime import Buffer, Device, ShapeMismatch, UnsupportedType, nn
from sley.runtime.device.buffer import BF16
from sley.runtime.kernels.conv.problem import Axis, Steps
from sley.runtime.kernels.pool.plan import plan
from sley.runtime.kernels.pool.problem import Pool
from sley.runtime.nn.pooling import MAX_TAPS
from sley.sim.engines.options import default_engine
from sley.sim.testing.pooling import Pooling, random_pooling
from sley.sim.testing.product import SPECIAL

Check = Callable[[Device, Pooling], None]
OPS = pytest.mark.parametrize("op", [BinaryOp.MAX, BinaryOp.ADD], ids=["max", "average"])
NONE = ((0, 0), (0, 0))


@pytest.fixture
def check(put: Callable[[Device, np.ndarray], Buffer], lay: Callable[..., Any]) -> Check:
    """Runs one pooling and compares every bit. Of every second one the arrays are views of larger ones, and what is
    around them stays."""

    def run(device: Device, case: Pooling) -> None:
        rng = np.random.default_rng(case.x.size)
        expected, views = case.expected, bool(rng.integers(2))
        x, out = lay(device, rng, case.x, rows=True), lay(device, rng, np.zeros_like(expected), rows=True)
        options: dict[str, Any] = {"stride": case.stride, "padding": case.padding, "out": out.view if views else None}
        given = x.view if views else put(device, case.x)
        if case.op is BinaryOp.MAX:
            found = nn.max_pool2d(given, case.window, **options)
        else:
            found = nn.avg_pool2d(given, case.window, count_include_pad=case.count_include_pad, **options)
        if views:
            out.expect(expected, str(case))
        else:
            np.testing.assert_array_equal(found.numpy().view(expected.dtype), expected, err_msg=str(case))

    return run


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 16))])
def test_random(device: Device, check: Check, seed: int) -> None:
    check(device, random_pooling(device.config, np.random.default_rng(seed)))


@pytest.mark.some(30)
@OPS
@pytest.mark.parametrize("window", [1, 3, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 4, 5))])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_windows(device: Device, check: Check, op: BinaryOp, window: int, stride: int) -> None:
    rng = np.random.default_rng(window)
    n = device.config.fold_depth()
    side = window - 1, window // 2
    for channels in (1, n + 1):
        case = random_pooling(
            device.config,
            rng,
            image=(1, 7, 6, channels),
            op=op,
            window=(window, window),
            stride=(stride, stride),
            padding=(side, side[::-1]),
        )
        check(device, case)
        check(device, replace(case, count_include_pad=not case.count_include_pad))


@OPS
def test_one_more_than_a_tile(device: Device, check: Check, op: BinaryOp) -> None:
    config, rng = device.config, np.random.default_rng(5)
    most = config.accumulator_rows // config.lane_elements()
    for y, x in ((1, most + 1), (most + 1, 1), (3, most // 2 + 1)):
        check(device, random_pooling(config, rng, image=(1, y, x, 3), op=op, window=(1, 1), stride=(1, 1), bf16=False))
    deep = most * config.fold_depth() + 1
    check(device, random_pooling(config, rng, image=(1, 2, 2, deep), op=op, window=(2, 2), stride=(2, 2), bf16=False))


@OPS
def test_windows_that_no_small_scratchpad_holds(device: Device, check: Check, op: BinaryOp) -> None:
    rng = np.random.default_rng(6)
    for window in ((1, 300), (40, 9)):
        image = (1, window[0] + 1, window[1] + 1, 5)
        check(
            device, random_pooling(device.config, rng, image=image, op=op, window=window, stride=(1, 2), padding=NONE)
        )


@pytest.mark.parametrize("channels", [1, 40, 300])
def test_global_average(device: Device, channels: int) -> None:
    rng = np.random.default_rng(channels)
    for bf16 in {False, device.config.has(ElementType.BF16)}:
        case = random_pooling(
            device.config,
            rng,
            image=(3, 7, 5, channels),
            op=BinaryOp.ADD,
            window=(7, 5),
            stride=(1, 1),
            padding=NONE,
            bf16=bf16,
        )
        x = device.array(case.x.view(BF16) if bf16 else case.x)
        found = nn.global_avg_pool2d(x).numpy()
        assert found.shape == (3, 1, 1, channels)
        np.testing.assert_array_equal(found.view(case.x.dtype), case.expected)


@pytest.mark.parametrize("config", chips(needs_bf16=True), indirect=True)
def test_special_bf16_values(device: Device, check: Check) -> None:
    """Infinities, NaNs, subnormals and zeros of both signs, beside padding."""
    rng = np.random.default_rng(3)
    for op in (BinaryOp.MAX, BinaryOp.ADD):
        for window in ((1, 1), (3, 2)):
            case = random_pooling(device.config, rng, image=(2, 6, 5, 21), op=op, window=window, bf16=True)
            check(device, replace(case, x=rng.choice(SPECIAL, case.x.shape)))


@pytest.mark.parametrize("config", chips(needs_bf16=True), indirect=True)
def test_what_the_largest_is(device: Device) -> None:
    def largest(*values: float) -> float:
        x = np.array(values, np.float32).astype(BF16).reshape(1, 1, -1, 1)
        pad = len(values) - 1
        found = nn.max_pool2d(device.array(x), (1, len(values)), stride=1, padding=((0, 0), (pad, pad))).numpy()
        return float(found[0, 0, pad, 0])

    assert np.isnan(largest(1.0, np.nan, np.inf))
    assert largest(-np.inf, -np.inf) == -np.inf
    assert largest(-np.inf, np.inf, 1.0) == np.inf
    assert largest(-2.0, -1.5) == -1.5
    assert not np.signbit(largest(-0.0, 0.0))
    assert np.signbit(largest(-0.0, -0.0))


def test_padding_never_wins(device: Device) -> None:
    x = device.array(np.full((1, 3, 3, 5), -127, np.int8))
    assert (nn.max_pool2d(x, 3, stride=1, padding=2).numpy() == -127).all()


def test_extremes_of_int8(device: Device) -> None:
    for value in (-128, 127):
        x = device.array(np.full((1, 5, 5, 5), value, np.int8))
        assert (nn.avg_pool2d(x, 5).numpy() == value).all()
        assert (nn.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False).numpy() == value).all()
        assert (nn.max_pool2d(x, 2).numpy() == value).all()


def test_halves_go_to_even(device: Device) -> None:
    x = np.array([[1, 2], [3, 4], [-1, -2], [-3, -4]], np.int8).reshape(1, 4, 2, 1)
    assert nn.avg_pool2d(device.array(x), (1, 2)).numpy().reshape(-1).tolist() == [2, 4, -2, -4]


@pytest.mark.parametrize(
    "engine",
    ["fast:nano", *(pytest.param(name, marks=pytest.mark.slow) for name in ("fast:base", "fast:quad"))]
    if default_engine() == "fast"
    else [],
)
def test_on_the_gateware(engine: str, check: Check) -> None:
    """The compiled gateware gives what the model gives."""
    with Device.open(f"{engine}?memory=4M", hang_cycles=200_000) as device:
        for seed in range(12):
            check(device, random_pooling(device.config, np.random.default_rng(seed)))


def test_a_graph(device: Device) -> None:
    rng = np.random.default_rng(2)
    case = random_pooling(device.config, rng, image=(1, 7, 7, 9), op=BinaryOp.ADD, window=(3, 3), bf16=False)
    case = replace(case, stride=(2, 2), padding=((1, 1), (1, 1)))
    image, out = device.array(np.zeros_like(case.x)), device.array(np.zeros_like(case.expected))
    with device.stream.capture() as graph:
        include = case.count_include_pad
        nn.avg_pool2d(image, 3, stride=2, padding=1, count_include_pad=include, out=out)
    image.write(case.x)
    graph.launch()
    assert np.array_equal(out.numpy(), case.expected)


@pytest.mark.parametrize("seed", range(8))
def test_plans_fit(config: ChipConfig, seed: int) -> None:
    """Large problems, too, have a tiling whose program fits."""
    rng = np.random.default_rng(seed)
    for op in (BinaryOp.MAX, BinaryOp.ADD):
        axes, channels = [], int(rng.choice([1, 17, 64, 509, 2048]))
        for _ in range(2):
            taps, step, out = (int(n) for n in rng.integers(1, (12, 5, 90)))
            pad = int(rng.integers(taps))
            axes.append(Axis(max((out - 1) * step + taps - pad - int(rng.integers(taps)), 1), out, taps, step, 1, pad))
        row = axes[1].size * channels
        image, to_row = axes[0].size * row, axes[1].out * channels
        steps = Steps(channels, row, channels, to_row, image, axes[0].out * to_row)
        taps = axes[0].taps * axes[1].taps
        plan(config, Pool(axes[0], axes[1], channels, channels, taps, steps, batch=int(rng.integers(1, 5)), op=op))


# What users get wrong


@pytest.fixture
def nano() -> Iterator[Device]:
    with Device.open("model:nano?memory=1M") as opened:
        yield opened


def test_wrong_arrays(nano: Device) -> None:
    x = nano.array(np.ones((1, 4, 4, 2), np.int8))
    with pytest.raises(UnsupportedType, match=r"x is ndarray; max_pool2d takes .* device.array"):
        nn.max_pool2d(np.ones((1, 4, 4, 2), np.int8), 2)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedType, match=r"out is ndarray; avg_pool2d .* device.empty"):
        nn.avg_pool2d(x, 2, out=np.ones((1, 2, 2, 2), np.int8))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedType, match=r"stream is 3; give one of device.streams"):
        nn.avg_pool2d(x, 2, stream=3)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedType, match=r"x is int32; max_pool2d takes int8 or bfloat16: .* astype"):
        nn.max_pool2d(nano.array(np.ones((1, 4, 4, 2), np.int32)), 2)
    with pytest.raises(UnsupportedType, match="the chip nano multiplies int8 only"):
        nn.max_pool2d(nano.array(np.ones((1, 4, 4, 2), BF16)), 2)
    with pytest.raises(ShapeMismatch, match=r"x has shape \(4, 4, 2\); images are \[images, y, x, channels\]"):
        nn.global_avg_pool2d(nano.array(np.ones((4, 4, 2), np.int8)))
    with pytest.raises(ShapeMismatch, match=r"the result is int8 of shape \(1, 2, 2, 2\)"):
        nn.max_pool2d(x, 2, out=nano.empty((1, 4, 4, 2), np.int8))
    with pytest.raises(BadRequest, match="the channels of a pixel must be contiguous"):
        nn.max_pool2d(x.transpose(0, 3, 1, 2), 2)
    with pytest.raises(BadRequest, match="out shares memory with x"):
        nn.max_pool2d(x, 1, out=x)
    with Device.open("model:nano?memory=1M") as other, pytest.raises(BadRequest, match="lives on another device"):
        nn.max_pool2d(x, 2, out=other.empty((1, 2, 2, 2), np.int8))


def test_wrong_windows(nano: Device) -> None:
    x = nano.array(np.ones((1, 4, 4, 2), np.int8))
    with pytest.raises(BadRequest, match="window is 0; it must be at least 1"):
        nn.max_pool2d(x, 0)
    with pytest.raises(BadRequest, match="stride is 0; it must be at least 1"):
        nn.max_pool2d(x, 2, stride=0)
    with pytest.raises(BadRequest, match=r"window is \(1, 2, 3\); give an integer, or a tuple of two"):
        nn.avg_pool2d(x, (1, 2, 3))  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="padding is -1; it must be at least 0"):
        nn.avg_pool2d(x, 2, padding=-1)
    with pytest.raises(ShapeMismatch, match=r"the window is 5 pixels along y, the image .* 4: pad it by at least 1"):
        nn.max_pool2d(x, 5)
    with pytest.raises(BadRequest, match=r"windows are 2 pixels along y and reach 2 out .* make padding at most 1"):
        nn.max_pool2d(x, 2, padding=2)


def test_sums_that_could_wrap(nano: Device) -> None:
    x = nano.array(np.ones((1, 1, 1, 1), np.int8))
    with pytest.raises(ShapeMismatch, match="int32 sums of more than 16777215 could wrap: use bfloat16"):
        nn.avg_pool2d(x, (1, MAX_TAPS + 1), padding=((0, 0), (MAX_TAPS, 0)))
