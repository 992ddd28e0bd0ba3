"""Runs a quantised network on a device."""

from dataclasses import dataclass

import numpy as np

from sley.examples.digits.layers import Array
from sley.examples.digits.quantise import QuantisedNetwork
from sley.runtime import Device, blas


@dataclass
class Work:
    """Cycles from doorbell to fence and multiply-accumulates, added up."""

    cycles: int = 0
    macs: int = 0


class DeviceNetwork:
    """A network whose weights and biases lie in device memory; ``work`` adds up what it has done."""

    def __init__(self, device: Device, network: QuantisedNetwork) -> None:
        self.device = device
        self.network = network
        self.weights = [device.array(layer.weights) for layer in network.layers]
        self.biases = [device.array(layer.bias) for layer in network.layers]
        self.work = Work()

    def run(self, images: Array) -> list[Array]:
        """int8 results of every layer for fp32 images. The host only gathers patches; the device does the rest."""
        x = self.network.quantise(images)
        outputs = []
        for layer, weights, bias in zip(self.network.layers, self.weights, self.biases, strict=True):
            rows = self.device.array(np.ascontiguousarray(layer.layer.lower(x)))
            out = self.device.empty((rows.shape[0], layer.layer.outputs), np.int8)
            with self.device.stream.timed() as timing:
                blas.gemm(rows, weights, bias, layer.scale, layer.layer.relu, out=out)
            self.work.cycles += timing.measured or 0
            self.work.macs += rows.shape[0] * weights.shape[0] * weights.shape[1]
            x = layer.layer.shape(out.numpy(), len(images))
            outputs.append(x)
        return outputs
