"""Products, convolutions and averages of int8 with a scale for each output channel, bit by bit."""

from typing import Any

import numpy as np
import pytest

from sley.driver import BadRequest
from sley.runtime import Device, ShapeMismatch, nn
from sley.sim.golden.conv import conv2d as golden_conv
from sley.sim.golden.gemm import gemm as golden_gemm

RANDOM = np.random.default_rng(0)


def int8(*shape: int) -> Any:
    return RANDOM.integers(-128, 128, shape).astype(np.int8)


def scales(count: int) -> Any:
    return (RANDOM.random(count) * 1e-3 + 1e-5).astype(np.float32)


@pytest.mark.parametrize("on_device", [False, True])
def test_matmul(base: Device, on_device: bool) -> None:
    a, b, row = int8(2, 3, 5, 33), int8(3, 33, 19), scales(19)
    given: Any = base.array(row) if on_device else row
    found = nn.matmul(base.array(a), base.array(b), scale=given)
    wanted = [[golden_gemm(x, y, "int8", scale=row) for x, y in zip(one, b, strict=True)] for one in a]
    assert np.array_equal(found.numpy(), wanted)
    rows = nn.matmul(base.array(a), base.array(b[0]), scale=given, dtype=np.float32).numpy().reshape(-1, 19)
    assert np.array_equal(rows.view(np.uint32), golden_gemm(a.reshape(-1, 33), b[0], "float32", scale=row))
    with pytest.raises(BadRequest, match="scale of float32 operands; scale one of them"):
        nn.matmul(*(base.array(np.ones((2, 2), np.float32)),) * 2, scale=2.0)


def test_linear(base: Device) -> None:
    x, w, row, bias = int8(2, 7, 40), int8(21, 40), scales(21), RANDOM.integers(-5000, 5000, 21).astype(np.int32)
    found = nn.linear(base.array(x), base.array(w), base.array(bias), scale=row, relu=True)
    wanted = golden_gemm(x.reshape(14, 40), w, "int8", trans_b=True, bias=bias, scale=row, relu=True)
    assert np.array_equal(found.numpy().reshape(14, 21), wanted)
    with pytest.raises(ShapeMismatch, match=r"scale has shape \(3,\); the result has 21 columns"):
        nn.linear(base.array(x), base.array(w), scale=row[:3])


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_conv1d_and_transposed(base: Device, groups: int) -> None:
    x, w, row = int8(2, 11, 6), int8(3, 6 // groups, 12), scales(12)
    bias = RANDOM.integers(-999, 999, 12).astype(np.int32)
    found = nn.conv1d(base.array(x), w, padding=1, groups=groups, bias=bias, scale=row, relu=True)
    wanted = golden_conv(
        x[:, None], w[None], "int8", padding=((0, 0), (1, 1)), groups=groups, bias=bias, scale=row, relu=True
    )
    assert np.array_equal(found.numpy(), wanted[:, 0])
    x, taps = int8(1, 4, 5, 12), int8(3, 3, 6 // groups, 12)
    back = nn.conv_transpose2d(
        base.array(x), taps, stride=2, padding=1, groups=groups, scale=row[:6], bias=bias[:6], relu=True
    )
    spaced = np.zeros((1, 7, 9, 12), np.int8)
    spaced[:, ::2, ::2] = x
    parts = np.flip(taps, (0, 1)).reshape(3, 3, taps.shape[2], groups, -1)
    turned = np.ascontiguousarray(np.swapaxes(parts, -1, -3).reshape(3, 3, 12 // groups, -1))
    edges = ((1, 1), (1, 1))
    wanted = golden_conv(spaced, turned, "int8", padding=edges, groups=groups, bias=bias[:6], scale=row[:6], relu=True)
    assert np.array_equal(back.numpy(), wanted)


@pytest.mark.parametrize("biased", [False, True])
def test_conv3d(base: Device, biased: bool) -> None:
    """The same as one sum of all taps."""
    x, w, row = int8(2, 4, 5, 6, 3), int8(3, 2, 2, 3, 7), scales(7)
    bias = RANDOM.integers(-9999, 9999, 7).astype(np.int32) if biased else None
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0), (0, 0))).astype(np.int32)
    sums = np.zeros((2, 4, 4, 5, 7), np.int64)
    for tap in np.ndindex(3, 2, 2):
        seen = padded[:, tap[0] : tap[0] + 4, tap[1] : tap[1] + 4, tap[2] : tap[2] + 5]
        sums += seen @ w[tap].astype(np.int32)
    sums += 0 if bias is None else bias
    found = nn.conv3d(base.array(x), w, padding=(1, 0, 0), scale=row, bias=bias, relu=biased)
    right = np.clip(np.round(sums.astype(np.float32) * row), 0 if biased else -128, 127)
    assert np.array_equal(found.numpy(), right.astype(np.int8))
    if not biased:
        plain = nn.conv3d(base.array(x), w, padding=(1, 0, 0))
        assert plain.dtype == np.int32
        assert np.array_equal(plain.numpy(), sums)
        back = nn.conv_transpose3d(base.array(int8(1, 2, 2, 2, 7)), w, scale=row[:3])
        assert (back.dtype, back.shape) == (np.int8, (1, 4, 3, 3, 3))
    else:
        with pytest.raises(BadRequest, match=r"need a scale of int8 operands: give scale=1.0"):
            nn.conv3d(base.array(x), w, bias=bias)
        with pytest.raises(BadRequest, match="bias of conv3d holds 2147483647, beyond"):
            nn.conv3d(base.array(x), w, bias=np.full(7, 2**31 - 1, np.int32), scale=row)


def test_averages(base: Device) -> None:
    x = int8(2, 6, 8, 5)
    found = nn.avg_pool2d(base.array(x), 2, scale=0.3)
    sums = x.reshape(2, 3, 2, 4, 2, 5).astype(np.int32).sum((2, 4))
    assert np.array_equal(found.numpy(), np.clip(np.round(sums.astype(np.float32) * np.float32(0.3 / 4)), -128, 127))
    whole = nn.global_avg_pool2d(base.array(x), scale=2.0)
    right = np.round(x.astype(np.int32).sum((1, 2), keepdims=True).astype(np.float32) * np.float32(2 / 48))
    assert np.array_equal(whole.numpy(), np.clip(right, -128, 127))
    with pytest.raises(BadRequest, match="scale is nan; it is a finite number"):
        nn.avg_pool2d(base.array(x), 2, scale=float("nan"))
