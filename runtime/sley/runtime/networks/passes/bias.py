"""A row that is added to a product with constant weights becomes part of it: a third input of MatMul."""

from __future__ import annotations

import numpy as np

from sley.runtime.networks.graph import Network, Node


def fuse_bias(network: Network) -> Network:
    """Runs the pass."""
    uses, constants = network.uses(), network.constants
    places = {name: place for place, node in enumerate(network.nodes) for name in node.outputs}
    nodes: list[Node | None] = list(network.nodes)
    for place, node in enumerate(network.nodes):
        if node.operator != "Add":
            continue
        for product, bias in (node.inputs, node.inputs[::-1]):
            maker = nodes[places[product]] if product in places else None
            if maker is None or maker.operator != "MatMul" or len(maker.inputs) != 2:
                continue
            weights, row = constants.get(maker.inputs[1]), constants.get(bias)
            if weights is None or row is None or not network.alone(product, uses):
                continue
            if weights.ndim == 2 and weights.dtype == row.dtype == np.float32 and row.shape == weights.shape[1:]:
                inputs = (*maker.inputs, bias)
                nodes[place] = Node("MatMul", inputs, node.outputs, maker.attributes, maker.name, maker.version)
                nodes[places[product]] = None
                break
    return network.with_nodes([node for node in nodes if node is not None])
