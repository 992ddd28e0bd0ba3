"""Averages of quantised values that are quantised again run on integers: sums in int32 times one scale.

Where scales differ zero points must be 0, as the scale is all that follows the sum; where scales and zero points are
the same, the average of integers is the integer of the average.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.networks.graph import Network, Node
from sley.runtime.networks.passes.quantized.parameters import INT8, dequantizer, makers_of, quantizer


def fuse_averages(network: Network) -> Network:
    """Runs the pass."""
    uses, makers = network.uses(), makers_of(network)
    instead: dict[int, list[Node]] = {}
    for node in network.nodes:
        if node.operator not in ("AveragePool", "GlobalAveragePool") or not network.alone(node.outputs[0], uses):
            continue
        (follower,) = uses[node.outputs[0]]
        x, made = dequantizer(network, makers, node.inputs[0]), quantizer(network, follower)
        if x is None or made is None or not (x.whole and made.whole) or {x.dtype, made.dtype} != {INT8}:
            continue
        padded = node.attributes.get("count_include_pad", 0) and any(node.attributes.get("pads", ()))
        centred = x.zero == made.zero == 0
        if not centred and (padded or not x.like(made)):
            continue
        if node.attributes.get("ceil_mode", 0) or any(n != 1 for n in node.attributes.get("dilations", ())):
            continue
        if node.operator == "AveragePool" and len(node.attributes["kernel_shape"]) != 2:
            continue
        attributes: dict[str, Any] = {**node.attributes, "scale": float(np.float32(x.scale / made.scale))}
        new = Node("QuantizedPool", (x.name,), follower.outputs, attributes, node.name, node.version)
        instead |= {id(node): [], id(follower): [new]}
    return network.with_nodes([new for node in network.nodes for new in instead.get(id(node), [node])])
