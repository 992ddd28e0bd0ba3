"""Channels of images that are shuffled, Reshape, Transpose and Reshape again, become a 1 x 1 convolution.

Channels are side by side in memory, so a shuffle would move single elements. Its matrix has one 1 in each row: products
with it are exact, and the array moves N elements a cycle. An infinity or a NaN reaches all channels of its pixel.
"""

from __future__ import annotations

import numpy as np

from sley.runtime.networks.graph import Network, Node

EXACT = "exact"
"""The attribute: the convolution rounds no element of its input."""
PERMUTATION = [0, 2, 1, 3, 4]


def shuffles(network: Network) -> Network:
    """Runs the pass."""
    uses, constants = network.uses(), dict(network.constants)
    makers = {name: node for node in network.nodes for name in node.outputs}
    gone: set[str] = set()
    nodes: list[Node] = []
    for node in network.nodes:
        middle = makers.get(node.inputs[0]) if node.operator == "Reshape" else None
        first = makers.get(middle.inputs[0]) if middle is not None and middle.operator == "Transpose" else None
        shapes = None if first is None else _shapes(network, first, node)
        if middle is None or first is None or shapes is None or middle.attributes.get("perm") != PERMUTATION:
            nodes.append(node)
            continue
        if not all(network.alone(name, uses) for name in (*first.outputs, *middle.outputs)):
            nodes.append(node)
            continue
        groups, each = shapes
        order = np.arange(groups * each).reshape(groups, each).T.ravel()
        name = f"{node.outputs[0]}.shuffle"
        constants[name] = np.eye(groups * each, dtype=np.float32)[order][:, :, None, None]
        attributes = {"kernel_shape": [1, 1], EXACT: 1}
        nodes.append(Node("Conv", (first.inputs[0], name), node.outputs, attributes, node.name, node.version))
        gone |= {first.outputs[0], middle.outputs[0]}
    return network.with_nodes([node for node in nodes if node.outputs[0] not in gone], constants)


def _shapes(network: Network, first: Node, last: Node) -> tuple[int, int] | None:
    """Groups, and channels of each, if the shapes are those of a shuffle of float32 images."""
    type, out = (network.types.get(name) for name in (first.inputs[0], last.outputs[0]))
    split = network.constants.get(first.inputs[1]) if first.operator == "Reshape" else None
    if type is None or out is None or split is None or type.dtype != np.float32 or split.size != 5:
        return None
    if type.shape is None or len(type.shape) != 4 or type.shape != out.shape:
        return None
    images, groups, each, *sides = (int(side) for side in split)
    channels = type.shape[1]
    return (groups, each) if (images, groups * each, *sides) == (type.shape[0], channels, *type.shape[2:]) else None
