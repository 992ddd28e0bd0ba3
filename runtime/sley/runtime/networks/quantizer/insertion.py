"""A quantised network: QuantizeLinear and DequantizeLinear around what runs on integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node, TensorType
from sley.runtime.networks.passes.quantized.parameters import makers_of
from sley.runtime.networks.quantizer.layers import SAME, Layer
from sley.runtime.networks.quantizer.ranges import Scale, weight_integers, weight_scales

VERSION = 21
"""The opset of operators that are added."""
UNKNOWN = TensorType(np.dtype(np.float32), None)


@dataclass(frozen=True)
class Choice:
    """How a layer runs. ``kind``: "int8", "dynamic", "bfloat16" or "float32". ``correction``: added to its bias."""

    layer: Layer
    kind: str
    correction: Array | None = None


def with_integers(
    network: Network, scales: Mapping[str, Scale], choices: list[Choice], real: Iterable[Node] = ()
) -> Network:
    """The network with values of these scales as int8, and layers of these kinds. ``real``: operators besides layers
    that take values before they become int8."""
    return _Insertion(network, scales, choices, real).run()


class _Insertion:
    """The new network while it grows."""

    def __init__(
        self, network: Network, scales: Mapping[str, Scale], choices: list[Choice], real: Iterable[Node]
    ) -> None:
        self.network, self.scales = network, scales
        self.real = {id(node) for node in real}
        self.choices = {id(choice.layer.node): choice for choice in choices}
        self.constants, self.types = dict(network.constants), dict(network.types)
        self.nodes: list[Node] = []
        self.makers = makers_of(network)
        self.renamed: dict[str, str] = {}
        self.behind: list[Node] = []

    def run(self) -> Network:
        for name in self.network.inputs:
            if name in self.scales:
                type = self.network.inputs[name]
                self.renamed[name] = self._through(name, f"{name}.quantised", self.scales[name], type)
        for node in self.network.nodes:
            choice = self.choices.get(id(node))
            real = id(node) in self.real or (choice is not None and choice.kind != "int8")
            wanted = self._real if real else self._quantised
            inputs = tuple(wanted(name) for name in node.inputs)
            made = [name for name in node.outputs if name in self.scales]
            outputs = tuple(f"{name}.real" if name in made else name for name in node.outputs)
            self._add(replace(node, inputs=inputs, outputs=outputs), choice)
            for name in made:
                type = self.types.get(name, self.network.outputs.get(name, UNKNOWN))
                self.types[f"{name}.real"] = type
                self._through(f"{name}.real", name, self.scales[name], type)
        return replace(self.network.with_nodes(self.nodes, self.constants), types=self.types)

    def _quantised(self, name: str) -> str:
        return self.renamed.get(name, name)

    def _real(self, name: str) -> str:
        """A value that no integers were made of on its way, for a layer that stays real."""
        if name in self.scales:
            return name if name in self.network.inputs else f"{name}.real"
        maker = self.makers.get(name)
        if maker is None or maker.operator not in SAME or len(maker.outputs) != 1:
            return name
        before = self._real(maker.inputs[0])
        if before == maker.inputs[0]:
            return name
        output = f"{name}.unquantised"
        if output not in self.types:
            self.types[output] = self.types.get(name, UNKNOWN)
            self.nodes.append(replace(maker, inputs=(before, *maker.inputs[1:]), outputs=(output,)))
        return output

    def _add(self, node: Node, choice: Choice | None) -> None:
        """The node, or what it becomes."""
        if choice is None or choice.kind == "float32":
            self.nodes.append(node)
            return
        if choice.kind == "bfloat16":
            self.nodes.append(replace(node, attributes={**node.attributes, "precision": "medium"}))
            return
        if choice.correction is not None:
            node = self._corrected(node, choice.correction)
        weights, axis = choice.layer.weights(self.network), choice.layer.axis
        scales = weight_scales(weights, axis)
        integers = weight_integers(weights, scales, axis)
        if choice.kind == "dynamic":
            self._dynamic(node, integers if axis == 1 else np.ascontiguousarray(integers.T), scales)
        else:
            name = self._weights(node, integers, scales, axis)
            self.nodes.append(replace(node, inputs=(node.inputs[0], name, *node.inputs[2:])))
        self.nodes += self.behind
        self.behind = []

    def _weights(self, node: Node, integers: Array, scales: Array, axis: int) -> str:
        name = f"{node.outputs[0]}.weights"
        inputs = (
            self._constant(f"{name}.integers", integers),
            self._constant(f"{name}.scales", scales),
            self._constant(f"{name}.zeros", np.zeros(len(scales), np.int8)),
        )
        self.nodes.append(Node("DequantizeLinear", inputs, (name,), {"axis": axis}, f"{node.name}.weights", VERSION))
        self.types[name] = TensorType(np.dtype(np.float32), integers.shape)
        return name

    def _dynamic(self, node: Node, columns: Array, scales: Array) -> None:
        """A scale for each row of x, found when it runs."""
        output = node.outputs[0]
        names = (self._constant(f"{output}.integers", columns), self._constant(f"{output}.scales", scales))
        inputs = (node.inputs[0], *names, *node.inputs[2:])
        self.nodes.append(Node("DynamicMatMul", inputs, node.outputs, {}, node.name, VERSION))

    def _corrected(self, node: Node, correction: Array) -> Node:
        """With a bias that has the correction; behind a MatMul, which has none, it is added."""
        output = node.outputs[0]
        if node.operator == "MatMul":
            inner, name = f"{output}.uncorrected", self._constant(f"{output}.correction", correction)
            self.types[inner] = self.types.get(output, UNKNOWN)
            self.behind.append(Node("Add", (inner, name), node.outputs, {}, f"{node.name}.correction", VERSION))
            return replace(node, outputs=(inner,))
        known = self.constants[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else np.float32(0)
        name = self._constant(f"{output}.bias", (known + correction).astype(np.float32))
        return replace(node, inputs=(*node.inputs[:2], name))

    def _through(self, real: str, output: str, scale: Scale, type: TensorType) -> str:
        """Reals as integers and back."""
        integers = f"{output}.integers"
        numbers = (
            self._constant(f"{output}.scale", np.array(scale.scale, np.float32)),
            self._constant(f"{output}.zero", np.array(scale.zero, np.int8)),
        )
        self.nodes.append(Node("QuantizeLinear", (real, *numbers), (integers,), {}, f"{output}.quantise", VERSION))
        self.nodes.append(Node("DequantizeLinear", (integers, *numbers), (output,), {}, f"{output}.real", VERSION))
        self.types |= {integers: TensorType(np.dtype(np.int8), type.shape), output: type}
        return output

    def _constant(self, name: str, value: Array) -> str:
        self.constants[name] = np.asarray(value)
        return name
