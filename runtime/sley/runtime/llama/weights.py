"""Weights of a model on a device: int8 with a scale for each output, embedding in bfloat16, norms in float32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.device.device import Device
from sley.runtime.kernels.few_rows.program import FewRows, few_rows_program
from sley.runtime.kernels.few_rows.weights import pack
from sley.runtime.llama.checkpoint import Checkpoint, Floats, Layer
from sley.runtime.llama.shape import LlamaShape

SMALLEST = float(2.0**-100)


@dataclass(frozen=True)
class Linear:
    """On a device: weights [inputs, outputs] int8, the same as the array takes them, scales [1, outputs] float32."""

    weights: Buffer
    packed: Buffer
    scales: Buffer

    @classmethod
    def of(cls, device: Device, values: Floats) -> Linear:
        """Of [outputs, inputs] in float32. Raises ``BadRequest`` for outputs that do not fill the chip's lanes."""
        numbers, scales = quantised(values)
        if len(values) % device.config.array:
            raise BadRequest(
                f"{len(values)} outputs of a product; on the chip {device.config.name} they are a multiple of "
                f"{device.config.array}"
            )
        packed = device.array(pack(device.config, numbers))
        return cls(device.array(np.ascontiguousarray(numbers.T)), packed, device.array(scales[None]))

    def of_tokens(self, x: Buffer, scales: Buffer, out: Buffer) -> None:
        """out [tokens, outputs] float32 = x [parts · tokens, inputs] int8, with the scales of tokens, of few tokens."""
        device = Device.of(x)
        problem = FewRows(out.shape[0], x.shape[0] // out.shape[0], self.packed.shape[0], x.shape[1])
        program = few_rows_program(device.config, problem)
        device.stream.launch(program, [x, scales, self.packed, self.scales, out], (1,))


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
