"""Measures a convolution on a device, in its own cycles."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.transport import computes
from sley.bench.conv.layers import ConvLayer
from sley.bench.gemm.measure import WrongResultError
from sley.runtime import Count, Device, nn


@dataclass(frozen=True)
class ConvMeasurement:
    """A layer, its cycles from doorbell to fence with the programs in place, and what no chip of this size beats."""

    layer: ConvLayer
    count: Count
    peak_macs: int

    @property
    def cycles(self) -> int:
        return self.count.cycles

    @property
    def bound(self) -> int:
        """Cycles that the multiplications take at the peak rate of the arrays."""
        return -(-self.layer.macs // self.peak_macs)


def measure_conv(device: Device, layer: ConvLayer, seed: int = 0) -> ConvMeasurement:
    """Runs a layer twice with random values, the second time measured, and checks the result where the device computes
    one. int8 with a bias, a scale for each channel, and ReLU."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, (1, layer.size, layer.size, layer.channels), np.int8)
    w = rng.integers(-128, 128, (layer.taps, layer.taps, layer.channels // layer.groups, layer.outputs), np.int8)
    bias = rng.integers(-5000, 5000, layer.outputs, np.int32)
    deep = layer.taps**2 * layer.channels // layer.groups
    scale = (rng.uniform(0.5, 1, layer.outputs) / (64 * np.sqrt(deep))).astype(np.float32)
    image, weights = device.array(x), nn.ConvWeights(device, w)
    rows = device.array(bias), device.array(scale)
    out = device.empty((1, layer.out, layer.out, layer.outputs), np.int8)

    def run() -> None:
        nn.conv2d(
            image,
            weights,
            stride=layer.stride,
            padding=layer.padding,
            groups=layer.groups,
            bias=rows[0],
            scale=rows[1],
            relu=True,
            out=out,
        )

    run()
    with device.stream.counted() as count:
        run()
    if computes(device.driver.transport):
        expected = _expected(layer, x, w, bias, scale)
        if not np.array_equal(out.numpy(), expected):
            raise WrongResultError(f"conv {layer.layer} differs from numpy in {np.sum(out.numpy() != expected)} values")
    return ConvMeasurement(layer, count, device.config.peak_macs)


def _expected(
    layer: ConvLayer, x: NDArray[Any], w: NDArray[Any], bias: NDArray[Any], scale: NDArray[Any]
) -> NDArray[Any]:
    """Exact: sums stay far below 2 ** 53, and unlike integers, floats are multiplied by a fast library."""
    out, pad, groups = layer.out, layer.padding, layer.groups
    padded = np.pad(x[0].astype(np.float64), ((pad, pad), (pad, pad), (0, 0)))
    sums = np.zeros((groups, out * out, layer.outputs // groups))
    weights = w.astype(np.float64).reshape(*w.shape[:3], groups, -1)
    for i, j in np.ndindex(layer.taps, layer.taps):
        end = (out - 1) * layer.stride + 1
        seen = padded[i : i + end : layer.stride, j : j + end : layer.stride]
        seen = seen.reshape(out * out, groups, -1).transpose(1, 0, 2)
        sums += seen @ weights[i, j].transpose(1, 0, 2)
    flat = sums.transpose(1, 0, 2).reshape(1, out, out, layer.outputs) + bias
    made: NDArray[Any] = np.clip(np.rint(np.maximum(flat.astype(np.float32) * scale, 0)), -128, 127).astype(np.int8)
    return made
