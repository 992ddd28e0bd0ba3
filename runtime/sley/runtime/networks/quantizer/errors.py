"""The error that each layer makes in int8, by itself: on the inputs that it has in the network of reals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sley.runtime.device.buffer import BF16
from sley.runtime.networks.graph import Array, Network, Node
from sley.runtime.networks.passes.constants import Fold
from sley.runtime.networks.quantizer.evaluation import signal_to_noise
from sley.runtime.networks.quantizer.layers import Layer
from sley.runtime.networks.quantizer.ranges import Scale, weights_rounded

FEWEST = 64
"""Times that an output channel must have been seen for its mean error to be known."""


@dataclass
class LayerError:
    """Sums over all outputs that were seen.

    Attributes
    ----------
    signal, noise: energies, in int8. shift: sum of the error of each output channel; count: elements of one. narrow:
        energy of the error in bfloat16.
    """

    signal: float = 0.0
    noise: float = 0.0
    narrow: float = 0.0
    shift: Array = field(default_factory=lambda: np.zeros(1))
    count: int = 0

    @property
    def correction(self) -> Array | None:
        """What the mean error of each output channel is made up by; ``None`` of channels that were seen too seldom."""
        return (-self.shift / self.count).astype(np.float32) if self.count >= FEWEST else None

    @property
    def corrected(self) -> float:
        """The energy of the error without its mean in each channel."""
        return self.noise - float(np.square(self.shift).sum()) / self.count if self.count >= FEWEST else self.noise

    def integer_ratio(self, corrected: bool) -> float:
        """Of signal to noise in int8, dB."""
        return signal_to_noise(self.signal, self.corrected if corrected else self.noise)

    @property
    def narrow_ratio(self) -> float:
        """Of signal to noise in bfloat16, dB."""
        return signal_to_noise(self.signal, self.narrow)


class Measure:
    """Adds up the errors of layers while a network is evaluated: ``watch`` sees its operators."""

    def __init__(
        self, network: Network, layers: Sequence[Layer], scales: dict[str, Scale], dynamic: bool, fold: Fold
    ) -> None:
        self.layers = {id(layer.node): layer for layer in layers}
        self.errors = {layer.name: LayerError() for layer in layers}
        self.scales, self.dynamic, self.fold = scales, dynamic, fold
        self.integers = {layer.name: weights_rounded(layer.weights(network), layer.axis) for layer in layers}

    def watch(self, node: Node, inputs: Sequence[Array | None], results: Sequence[Array]) -> None:
        layer = self.layers.get(id(node))
        if layer is None:
            return
        x, w = inputs[0], inputs[1]
        assert x is not None
        assert w is not None
        error, real = self.errors[layer.name], results[0].astype(np.float64)
        difference = self._of(node, self._rounded(layer, x), self.integers[layer.name], inputs) - real
        parts = [value.astype(BF16).astype(np.float32) for value in (x, w)]
        narrow = self._of(node, parts[0], parts[1], inputs) - real
        channels = 1 if node.operator == "Conv" else real.ndim - 1
        others = tuple(axis for axis in range(real.ndim) if axis != channels)
        error.signal += float(np.square(real).sum())
        error.noise += float(np.square(difference).sum())
        error.narrow += float(np.square(narrow).sum())
        error.shift = error.shift + difference.sum(axis=others)
        error.count += real.size // real.shape[channels]

    def _of(self, node: Node, x: Array, w: Array, inputs: Sequence[Array | None]) -> Array:
        (found,) = self.fold(node, [x, w, *inputs[2:]])
        return found

    def _rounded(self, layer: Layer, x: Array) -> Array:
        if not (self.dynamic and layer.linear):
            return self.scales[layer.node.inputs[0]].rounded(x)
        scale = np.maximum(abs(x).max(-1, keepdims=True) / 127, 2.0**-100).astype(np.float32)
        found: Array = np.clip(np.rint(x / scale), -127, 127).astype(np.float32) * scale
        return found
