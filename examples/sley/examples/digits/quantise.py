"""From fp32 to int8: symmetric scales, one for each tensor, activations calibrated on training images."""

from dataclasses import dataclass

import numpy as np

from sley.examples.digits.layers import Array, Layer
from sley.examples.digits.training import Network

LIMIT = 127


@dataclass(frozen=True)
class QuantisedLayer:
    """``weights`` int8 [depth, outputs], ``bias`` int32, ``scale`` from sums to int8 results."""

    layer: Layer
    weights: Array
    bias: Array
    scale: float


@dataclass(frozen=True)
class QuantisedNetwork:
    """Layers in order; an fp32 image becomes int8 as ``round(image / input_scale)``."""

    name: str
    input_scale: float
    layers: tuple[QuantisedLayer, ...]

    def quantise(self, images: Array) -> Array:
        return np.clip(np.rint(images / self.input_scale), -LIMIT, LIMIT).astype(np.int8)


def quantise(network: Network, calibration: Array) -> QuantisedNetwork:
    """Scales such that the largest value each tensor takes on the ``calibration`` images becomes 127."""
    values = network.forward(calibration)
    scales = [float(np.abs(value).max()) / LIMIT for value in values]
    layers = []
    for layer, weights, bias, before, after in zip(
        network.layers, network.weights, network.biases, scales[:-1], scales[1:], strict=True
    ):
        own = float(np.abs(weights).max()) / LIMIT
        layers.append(
            QuantisedLayer(
                layer,
                np.rint(weights / own).astype(np.int8),
                np.rint(bias / (before * own)).astype(np.int32),
                before * own / after,
            )
        )
    return QuantisedNetwork(network.name, scales[0], tuple(layers))
