"""Batch norm behind a convolution becomes part of its weights and bias.

Weights of each output are multiplied by scale / sqrt(variance + eps), in float64, and rounded once; what is left is a
bias.
"""

from __future__ import annotations

import numpy as np

from sley.runtime.networks.graph import Network, Node

VALUES = 4
"""Inputs of batch norm besides x: scale, bias, mean, variance."""


def fold_batch_norm(network: Network) -> Network:
    """Runs the pass."""
    uses, constants = network.uses(), dict(network.constants)
    makers = {name: node for node in network.nodes for name in node.outputs}
    gone: dict[str, Node] = {}
    nodes: list[Node] = []
    for node in network.nodes:
        maker = makers.get(node.inputs[0]) if node.operator == "BatchNormalization" else None
        if maker is None or not _folds(network, maker, node, uses):
            nodes.append(node)
            continue
        scale, shift, mean, var = (constants[name].astype(np.float64) for name in node.inputs[1:])
        weights = constants[maker.inputs[1]]
        bias = constants[maker.inputs[2]].astype(np.float64) if len(maker.inputs) > 2 and maker.inputs[2] else 0.0
        factor = scale / np.sqrt(var + node.attributes.get("epsilon", 1e-5))
        names = f"{node.outputs[0]}.weights", f"{node.outputs[0]}.bias"
        constants[names[0]] = (weights * factor.reshape(-1, *[1] * (weights.ndim - 1))).astype(weights.dtype)
        constants[names[1]] = ((bias - mean) * factor + shift).astype(weights.dtype)
        joined = Node("Conv", (maker.inputs[0], *names), node.outputs[:1], maker.attributes, maker.name, maker.version)
        gone[maker.outputs[0]] = maker
        nodes.append(joined)
    return network.with_nodes([node for node in nodes if gone.get(node.outputs[0]) is not node], constants)


def _folds(network: Network, maker: Node, node: Node, uses: dict[str, list[Node]]) -> bool:
    known = [*node.inputs[1:], *maker.inputs[1:]]
    return (
        maker.operator == "Conv"
        and network.alone(node.inputs[0], uses)
        and not node.attributes.get("training_mode", 0)
        and len(node.inputs) == 1 + VALUES
        and all(name in network.constants for name in known if name)
    )
