"""Sums of two quantised values that are quantised again become one launch on integers.

With a = sa · (qa - za), and the same of b and the result, the result is qa · (sa / s) + (qb · (sb / s) + shift) in
float32, shift = z - za · sa / s - zb · sb / s, rounded half to even and saturated. A Relu before it is a bound, z.
"""

from __future__ import annotations

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node
from sley.runtime.networks.passes.quantized.parameters import INT8, dequantizer, makers_of, quantizer
from sley.runtime.networks.region import Region, Step


def fuse_sums(network: Network) -> Network:
    """Runs the pass."""
    uses, makers = network.uses(), makers_of(network)
    instead: dict[int, list[Node]] = {}
    for node in network.nodes:
        if node.operator not in ("Add", "Sum") or len(node.inputs) != 2:
            continue
        chain = [node]
        while network.alone(chain[-1].outputs[0], uses) and chain[-1].operator != "QuantizeLinear":
            (follower,) = uses[chain[-1].outputs[0]]
            if follower.operator != "QuantizeLinear" and (follower.operator != "Relu" or len(chain) > 1):
                break
            chain.append(follower)
        made = quantizer(network, chain[-1])
        a, b = (dequantizer(network, makers, name) for name in node.inputs)
        if made is None or a is None or b is None:
            continue
        if not all(one.whole and one.dtype == INT8 and one.name not in network.constants for one in (a, b, made)):
            continue
        first, second = a.scale / made.scale, b.scale / made.scale
        shift = float(made.zero - a.zero * first - b.zero * second)
        steps = [Step("Affine", (1,), (_number(second), _number(shift))), Step("Scaled", (0, 2), (_number(first),))]
        if len(chain) > 2 and made.zero > -128:
            steps.append(Step("AtLeast", (3,), (float(made.zero),)))
        region = Region(2, tuple(steps), "int8")
        new = Node("Region", (a.name, b.name), chain[-1].outputs, {"region": region}, node.name, node.version)
        instead |= {id(gone): [] for gone in chain} | {id(chain[-1]): [new]}
    return network.with_nodes([new for node in network.nodes for new in instead.get(id(node), [node])])


def _number(value: Array | float) -> float:
    return float(np.float32(value))
