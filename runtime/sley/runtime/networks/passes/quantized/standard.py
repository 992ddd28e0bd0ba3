"""Operators on quantised values become operators on reals between DequantizeLinear and QuantizeLinear.

So there is one form, in which the passes behind this one find what runs on integers: QLinearConv and QLinearMatMul.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node, TensorType

FLOAT = np.dtype(np.float32)


def as_standard(network: Network) -> Network:
    """Runs the pass."""
    if not any(_known(network, node) for node in network.nodes):
        return network
    constants, types = dict(network.constants), dict(network.types)
    nodes: list[Node] = []
    for node in network.nodes:
        if not _known(network, node):
            nodes.append(node)
            continue
        x, w, result = node.inputs[:3], node.inputs[3:6], node.inputs[6:8]
        convolution = node.operator == "QLinearConv"
        names = [f"{node.outputs[0]}.{part}" for part in ("x", "w", "real", "bias")]
        nodes.append(_real(node, x, names[0], {}))
        axis = 0 if convolution else _columns(network, w[0])
        nodes.append(_real(node, w, names[1], {"axis": axis}))
        operands = names[:2]
        if len(node.inputs) > 8 and node.inputs[8]:
            scale, zero = _bias(constants, x[1], w[1], names[3])
            nodes.append(_real(node, (node.inputs[8], scale, zero), names[3], {"axis": 0}))
            operands.append(names[3])
        operator = "Conv" if convolution else "MatMul"
        nodes.append(replace(node, operator=operator, inputs=tuple(operands), outputs=(names[2],)))
        nodes.append(
            Node("QuantizeLinear", (names[2], *result), node.outputs, {}, f"{node.name}.quantised", node.version)
        )
        kept = types.get(node.outputs[0], network.outputs.get(node.outputs[0]))
        types |= dict.fromkeys(names, TensorType(FLOAT, None))
        types[names[2]] = TensorType(FLOAT, None if kept is None else kept.shape)
    return replace(network.with_nodes(nodes, constants), types=types)


def _known(network: Network, node: Node) -> bool:
    """Whether it is such an operator, of known scales and zero points."""
    numbers = (*node.inputs[1:3], *node.inputs[4:8])
    return node.operator in ("QLinearConv", "QLinearMatMul") and all(name in network.constants for name in numbers)


def _real(node: Node, inputs: tuple[str, ...], output: str, attributes: dict[str, int]) -> Node:
    return Node("DequantizeLinear", inputs, (output,), attributes, f"{node.name}.real", node.version)


def _columns(network: Network, name: str) -> int:
    """The axis of the columns of a matrix whose columns may have scales."""
    return network.constants[name].ndim - 1 if name in network.constants else 1


def _bias(constants: dict[str, Array], x: str, w: str, name: str) -> tuple[str, str]:
    """The scale and the zero point of a bias: what one product stands for."""
    constants[f"{name}.scale"] = (constants[x].astype(np.float64) * constants[w]).astype(np.float32)
    constants[f"{name}.zero"] = np.zeros(constants[f"{name}.scale"].shape, np.int32)
    return f"{name}.scale", f"{name}.zero"
