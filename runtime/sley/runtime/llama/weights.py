"""Weights of a model on a device: int8 with a scale for each output, embedding in bfloat16, norms in float32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.llama.checkpoint import Checkpoint, Floats, Layer
from sley.runtime.llama.shape import LlamaShape

SMALLEST = float(2.0**-100)


@dataclass(frozen=True)
class Linear:
    """Weights [inputs, outputs] int8 and scales [1, outputs] float32, on a device."""

    weights: Buffer
    scales: Buffer

    @classmethod
    def of(cls, device: Device, values: Floats) -> Linear:
        """Of [outputs, inputs] in float32."""
        numbers, scales = quantised(values)
        return cls(device.array(np.ascontiguousarray(numbers.T)), device.array(scales[None]))


def quantised(values: Floats) -> tuple[NDArray[np.int8], Floats]:
    """[outputs, inputs] as int8, and the scale of each output: its largest absolute value by 127."""
    scales = np.maximum(np.abs(values).max(axis=1) / np.float32(127), np.float32(SMALLEST)).astype(np.float32)
    return np.rint(values / scales[:, None]).astype(np.int8), scales


@dataclass(frozen=True)
class DeviceLayer:
    """A layer. Products of the same input are one: queries, keys and values, and gate and up."""

    attention_norm: Buffer
    projection: Linear
    output: Linear
    feed_norm: Buffer
    gate_up: Linear
    down: Linear

    @classmethod
    def of(cls, device: Device, layer: Layer) -> DeviceLayer:
        """A layer of a checkpoint."""
        return cls(
            device.array(layer.attention_norm[None]),
            Linear.of(device, np.concatenate([layer.query, layer.key, layer.value])),
            Linear.of(device, layer.output),
            device.array(layer.feed_norm[None]),
            Linear.of(device, np.concatenate([layer.gate, layer.up])),
            Linear.of(device, layer.down),
        )


class LlamaWeights:
    """A model on a device.

    Attributes
    ----------
    shape: its sizes. embedding: [vocabulary, width] bfloat16. layers, norm, head: weights. cosines, sines: [context,
    head / 2] float32, of the angles position · base^(-2 i / head).
    """

    def __init__(self, device: Device, checkpoint: Checkpoint, context: int | None = None) -> None:
        self.shape: LlamaShape = checkpoint.shape
        self.context = context or self.shape.context
        self.embedding = device.array(checkpoint.embedding.astype(BF16))
        self.layers = tuple(DeviceLayer.of(device, layer) for layer in checkpoint.layers)
        self.norm = device.array(checkpoint.norm[None])
        self.head = Linear.of(device, checkpoint.head)
        pairs = np.arange(self.shape.head // 2)
        angles = np.arange(self.context)[:, None] * self.shape.rotary_base ** (-2 * pairs / self.shape.head)
        self.cosines, self.sines = (device.array(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
