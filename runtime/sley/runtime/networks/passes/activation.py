"""A Relu behind a convolution, a product of matrices or a batch norm becomes part of it: the attribute ``relu``."""

from __future__ import annotations

from sley.runtime.networks.graph import Network, Node

TAKES = ("BatchNormalization", "Conv", "Gemm", "MatMul")
"""Operators that have it."""


def fuse_activation(network: Network) -> Network:
    """Runs the pass."""
    uses = network.uses()
    places = {name: place for place, node in enumerate(network.nodes) for name in node.outputs}
    nodes: list[Node | None] = list(network.nodes)
    for place, node in enumerate(network.nodes):
        if node.operator != "Relu" or node.inputs[0] not in places or not network.alone(node.inputs[0], uses):
            continue
        maker = nodes[places[node.inputs[0]]]
        if maker is None or maker.operator not in TAKES or maker.attributes.get("relu") or len(maker.outputs) > 1:
            continue
        attributes = {**maker.attributes, "relu": 1}
        nodes[place] = Node(maker.operator, maker.inputs, node.outputs, attributes, maker.name, maker.version)
        nodes[places[node.inputs[0]]] = None
    return network.with_nodes([node for node in nodes if node is not None])
