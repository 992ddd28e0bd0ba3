"""What of a network is quantised: its layers, and the values that become int8."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node
from sley.runtime.networks.passes.attention_forms import FoundAttention
from sley.runtime.networks.passes.quantized.parameters import makers_of

SAME = (
    "DepthToSpace",
    "Flatten",
    "Identity",
    "MaxPool",
    "Reshape",
    "SpaceToDepth",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
"""Operators whose result has the integers of their input."""
ALIKE = ("AveragePool", "Concat", "GlobalAveragePool")
"""Operators whose result has the scale of their inputs."""
SUMS = ("Add", "Sum")


@dataclass(frozen=True)
class Layer:
    """A convolution or product with known weights.

    Attributes
    ----------
    node: the operator. axis: of the weights, along which outputs are.
    """

    node: Node
    axis: int

    @property
    def name(self) -> str:
        return self.node.name or self.node.outputs[0]

    @property
    def linear(self) -> bool:
        return self.node.operator != "Conv"

    def weights(self, network: Network) -> Array:
        return network.constants[self.node.inputs[1]]


def layers_of(network: Network) -> list[Layer]:
    """All that may run on integers, in their order."""
    found = []
    for node in network.nodes:
        known = network.constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
        if known is None or known.dtype != np.float32 or node.inputs[0] in network.constants:
            continue
        if node.operator == "Conv" and known.ndim in (3, 4):
            found.append(Layer(node, 0))
        elif node.operator == "MatMul" and known.ndim == 2:
            found.append(Layer(node, 1))
        elif node.operator == "Gemm" and _plain(node):
            found.append(Layer(node, 0 if node.attributes.get("transB", 0) else 1))
    return found


def operands_of(attention: FoundAttention) -> tuple[str, str, str]:
    """What of an attention becomes int8: q, k and v."""
    return attention.q, attention.k, attention.v


def _plain(gemm: Node) -> bool:
    """Whether it is x · W + bias."""
    factors = {gemm.attributes.get(name, 1.0) for name in ("alpha", "beta")}
    return factors == {1.0} and not gemm.attributes.get("transA", 0)


class Values:
    """Values of a network that become int8, and which of them have one scale."""

    def __init__(
        self, network: Network, layers: Collection[Layer], attentions: Collection[FoundAttention] = ()
    ) -> None:
        self.network, self.makers = network, makers_of(network)
        self.convolutions = [layer.node for layer in layers if layer.node.operator == "Conv"]
        self.group: dict[str, str] = {}
        """Of each value that becomes int8, one that stands for all of its scale."""
        for layer in layers:
            self._take(layer.node.inputs[0])
        for attention in attentions:
            for name in operands_of(attention):
                self._take(name)
        uses = network.uses()
        for node in reversed(network.nodes):
            known = set(node.inputs) & set(network.constants)
            if node.operator in ALIKE and node.outputs[0] in self.group and not known:
                for name in node.inputs:
                    self._take(name)
                    self._join(self.source(name), node.outputs[0])
            elif node.operator in SUMS and len(node.inputs) == 2 and not known:
                behind = uses.get(node.outputs[0], [])
                relu = len(behind) == 1 and behind[0].operator == "Relu"
                if (behind[0] if relu else node).outputs[0] in self.group:
                    for name in self._joined(node):
                        self._take(name)

    def _joined(self, node: Node) -> list[str]:
        """What a sum needs as integers: not the result of a convolution that nobody else takes, whose sums stay."""
        uses = self.network.uses()
        for name in reversed(node.inputs):
            maker = self.makers.get(name)
            if any(maker is node for node in self.convolutions) and self.network.alone(name, uses):
                return [other for other in node.inputs if other != name]
        return list(node.inputs)

    def source(self, name: str) -> str:
        """The value that another one has the integers of."""
        while name in self.makers and self.makers[name].operator in SAME and len(self.makers[name].outputs) == 1:
            name = self.makers[name].inputs[0]
        return name

    def _take(self, name: str) -> None:
        source = self.source(name)
        if source not in self.network.constants:
            self.group.setdefault(source, source)

    def _join(self, first: str, second: str) -> None:
        old, new = self.group[first], self.group[second]
        self.group = {name: new if own == old else own for name, own in self.group.items()}
