"""Products of two computed quantised values become ``CentredMatMul``: exact sums in int32, and one scale behind."""

from __future__ import annotations

import numpy as np

from sley.runtime.networks.graph import Network, Node
from sley.runtime.networks.passes.quantized.parameters import INT8, dequantizer, makers_of, quantizer


def fuse_activations(network: Network) -> Network:
    """Runs the pass."""
    makers, uses = makers_of(network), network.uses()
    instead: dict[int, list[Node]] = {}
    for node in network.nodes:
        if node.operator != "MatMul" or len(node.inputs) != 2:
            continue
        operands = [dequantizer(network, makers, name) for name in node.inputs]
        x, y = operands
        if x is None or y is None or any(not one.whole or one.dtype != INT8 for one in (x, y)):
            continue
        if {x.name, y.name} & set(network.constants):
            continue
        follower = uses[node.outputs[0]][0] if network.alone(node.outputs[0], uses) else None
        made = None if follower is None else quantizer(network, follower)
        if made is not None and (not made.whole or made.dtype != INT8):
            made = None
        scale = x.scale * y.scale if made is None else x.scale * y.scale / made.scale
        attributes = {
            "scale": float(np.float32(scale)),
            "zeros": [int(x.zero), int(y.zero), 0 if made is None else int(made.zero)],
            "result": "float32" if made is None else "int8",
        }
        last = node if made is None or follower is None else follower
        new = Node("CentredMatMul", (x.name, y.name), last.outputs, attributes, node.name, node.version)
        instead |= {id(node): [], id(last): [new]}
    return network.with_nodes([new for node in network.nodes for new in instead.get(id(node), [node])])
