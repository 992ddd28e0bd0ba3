"""DequantizeLinear goes behind operators that only move elements, which so move integers; a QuantizeLinear that meets
its own DequantizeLinear, or another one of the same, goes.
"""

from __future__ import annotations

from dataclasses import replace

from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.passes.quantized.parameters import INT8, Integers, dequantizer, quantizer

ALONE = tuple(
    [
        "DepthToSpace",
        "Flatten",
        "Identity",
        "MaxPool",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    ]
)
MOVES = ("Concat", *ALONE)
"""Operators that may move integers as they move reals. MaxPool keeps the largest, and the scale is above 0."""


def move_integers(network: Network) -> Network:
    """Runs the pass."""
    if not any(node.operator == "DequantizeLinear" for node in network.nodes):
        return network
    return _Mover(network).run()


class _Mover:
    """The new network while it grows. ``same``: values that are others; ``quantized``: integers that were made of each
    real."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.makers: dict[str, Node] = {}
        self.nodes: list[Node] = []
        self.types = dict(network.types)
        self.same: dict[str, str] = {}
        self.quantized: dict[str, list[Integers]] = {}

    def run(self) -> Network:
        for node in self.network.nodes:
            node = replace(node, inputs=tuple(self.same.get(name, name) for name in node.inputs))
            if not self._moved(node) and not self._goes(node):
                self._add(node)
        return replace(self.network.with_nodes(self.nodes), types=self.types)

    def _add(self, node: Node) -> None:
        self.nodes.append(node)
        self.makers |= dict.fromkeys(node.outputs, node)

    def _moved(self, node: Node) -> bool:
        if node.operator not in MOVES or len(node.outputs) != 1:
            return False
        moved = node.inputs if node.operator == "Concat" else node.inputs[:1]
        found = [dequantizer(self.network, self.makers, name) for name in moved]
        first = found[0]
        if first is None or any(one is None or not (one is first or first.like(one)) for one in found):
            return False
        axis = self._axis(node, first)
        if axis is not None and axis < 0:
            return False
        output = node.outputs[0]
        name, maker = f"{output}.integers", self.makers[node.inputs[0]]
        names = tuple(one.name for one in found if one is not None)
        self._add(replace(node, inputs=(*names, *node.inputs[len(names) :]), outputs=(name,)))
        attributes = {} if axis is None else {"axis": axis}
        self._add(replace(maker, inputs=(name, *maker.inputs[1:]), outputs=(output,), attributes=attributes))
        known = self.types.get(output, self.network.outputs.get(output))
        self.types[name] = TensorType(first.dtype, None if known is None else known.shape)
        return True

    def _axis(self, node: Node, integers: Integers) -> int | None:
        """Where the axis of scales goes; ``None`` if there is one scale, -1 if the operator has no place for it."""
        if integers.whole:
            return None
        perm = node.attributes.get("perm")
        if node.operator != "Transpose" or perm is None:
            return -1
        assert integers.axis is not None
        return list(perm).index(integers.axis % len(perm))

    def _goes(self, node: Node) -> bool:
        """Whether a QuantizeLinear makes integers that are there: those that its input is made of, or those of another
        one."""
        made, before = quantizer(self.network, node), dequantizer(self.network, self.makers, node.inputs[0])
        if made is None or made.dtype != INT8 or not made.whole:
            return False
        there = [before] if before is not None else self.quantized.setdefault(node.inputs[0], [])
        found = next((one for one in there if made.like(one)), None)
        if found is None:
            there.append(made)
            return False
        if node.outputs[0] in self.network.outputs:
            self._add(Node("Identity", (found.name,), node.outputs, {}, node.name, node.version))
        else:
            self.same[node.outputs[0]] = found.name
        return True
