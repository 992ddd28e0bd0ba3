"""Convolutions of 3 x 3: a page of the tile language beside the kernel that is planned by hand, on the same images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sley.bench.tile.beside import Beside, second_runs
from sley.bench.tile.kernels import convolution
from sley.runtime import Device, nn, tile
from sley.runtime.device.buffer import BF16

TAPS = 3


@dataclass(frozen=True)
class Layer:
    """Pixels of a side of the result, channels, and outputs."""

    side: int
    channels: int
    outputs: int

    @property
    def name(self) -> str:
        return f"{self.side} x {self.side}, {self.channels} to {self.outputs}"


@dataclass(frozen=True)
class Compared(Beside):
    """``equal``: whether the results of both are, of integers that every order of sums gives the same."""

    equal: bool


def compare(device: Device, layer: Layer) -> Compared:
    """Both on one image of bf16, with a margin of a pixel."""
    random, side = np.random.default_rng(0), layer.side
    weights = random.integers(-2, 3, (TAPS, TAPS, layer.channels, layer.outputs)).astype(BF16)
    padded = side + TAPS - 1
    x = device.array(random.integers(-2, 3, (1, padded, padded, layer.channels)).astype(BF16))
    packed = nn.ConvWeights(device, weights)
    flat = device.array(weights.reshape(-1, layer.outputs))
    outs = [device.empty((1, side, side, layer.outputs), BF16) for _ in range(2)]
    grid = convolution[lambda columns: (tile.cdiv(layer.outputs, columns), side, 1)]
    cycles = second_runs(device, lambda: grid(x, flat, outs[0], taps=TAPS), lambda: nn.conv2d(x, packed, out=outs[1]))
    return Compared(*cycles, outs[0].numpy().tobytes() == outs[1].numpy().tobytes())
