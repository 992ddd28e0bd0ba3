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
        average = node.operator in ("AveragePool", "GlobalAveragePool") or _of_images(network, node)
        if not average or not network.alone(node.outputs[0], uses):
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
        kept = node.attributes if node.operator == "AveragePool" else {}
        attributes: dict[str, Any] = {**kept, "scale": float(np.float32(x.scale / made.scale))}
        new = Node("QuantizedPool", (x.name,), follower.outputs, attributes, node.name, node.version)
        instead |= {id(node): [], id(follower): [new]}
    return network.with_nodes([new for node in network.nodes for new in instead.get(id(node), [node])])


def _of_images(network: Network, node: Node) -> bool:
    """Whether a mean is that of each channel of images."""
    if node.operator != "ReduceMean":
        return False
    type = network.types.get(node.inputs[0])
    if type is None or type.shape is None or len(type.shape) != 4:
        return False
    known = network.constants.get(node.inputs[1]) if len(node.inputs) > 1 else np.array(node.attributes.get("axes", ()))
    axes = set() if known is None else {int(axis) % 4 for axis in known.ravel()}
    return bool(node.attributes.get("keepdims", 1)) and axes == {2, 3}
