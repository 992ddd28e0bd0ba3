"""Values that are only ever rounded to bfloat16 are kept in it: the attribute ``result``.

At precision "medium" a product of float32 takes the first bfloat16 of each operand. What nobody but such products
uses, perhaps behind operators that choose or move elements, is rounded where it is made instead: no bit of a result
changes, and half of the bytes are moved. A region of element-wise operators makes both, where others use its result,
too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sley.runtime.device.buffer import BF16
from sley.runtime.networks.graph import Network, Node
from sley.runtime.networks.passes.attention import FUSED
from sley.runtime.networks.passes.shuffles import EXACT

RESULT = "result"
"""The attribute: the element type of what an operator makes, where it is not that of the network."""
MAKERS = ("Attention", "BatchNormalization", "Conv", "Gelu", "Gemm", "LRN", "MatMul", "Region")
"""Operators that round their result to it."""
TWIN = "Region"
"""The operator that makes a value twice, in float32 and rounded, where others than products take it, too."""
CHOOSING = (
    "Concat",
    "Dropout",
    "Flatten",
    "Gather",
    "Identity",
    "MaxPool",
    "Relu",
    "Reshape",
    "Slice",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
"""Operators whose results are elements of their first input (Concat: of all inputs), or zeros: rounding before them
or behind them is the same."""


def narrow(network: Network) -> Network:
    """Runs the pass, for products of precision "medium"."""
    uses = network.uses()
    rounded: set[str] = set()
    for node in reversed(network.nodes):
        for name in node.outputs:
            type = network.types.get(name)
            if name in network.outputs or type is None or type.dtype != np.float32 or name not in uses:
                continue
            if (
                len(node.outputs) == 1
                and node.operator in (*MAKERS, *CHOOSING)
                and (node.operator != "Attention" or FUSED in node.attributes)
                and all(_rounds(network, user, name, rounded) for user in uses[name])
            ):
                rounded.add(name)
    twins = {
        name
        for node in network.nodes
        for name in node.outputs
        if node.operator == TWIN
        and name not in rounded
        and _rounded_by_some(network, uses.get(name, []), name, rounded)
    }
    nodes = [_narrowed(node, rounded) for node in network.nodes]
    return network.with_nodes([_with_twins(network, node, twins, rounded) for node in nodes])


def typed(network: Network) -> Network:
    """Products that the network itself has in bfloat16 are rounded to it where they are made, not left in float32."""
    kinds = {name: type.dtype for name, type in (*network.types.items(), *network.outputs.items())}
    nodes = [
        replace(node, attributes={**node.attributes, RESULT: BF16})
        if node.operator in MAKERS and kinds.get(node.outputs[0]) == BF16
        else node
        for node in network.nodes
    ]
    return network.with_nodes(nodes)


def _rounded_by_some(network: Network, users: list[Node], name: str, rounded: set[str]) -> bool:
    return any(_rounds(network, user, name, rounded) for user in users)


def _with_twins(network: Network, node: Node, twins: set[str], rounded: set[str]) -> Node:
    """An operator that makes a twin, or takes one."""
    if node.outputs[0] in twins:
        node = replace(node, outputs=(node.outputs[0], twin(node.outputs[0])))
    taken = {name for name in twins & set(node.inputs) if _rounds(network, node, name, rounded)}
    return replace(node, inputs=tuple(twin(name) if name in taken else name for name in node.inputs)) if taken else node


def twin(name: str) -> str:
    """The name of a value in bfloat16 beside that in float32."""
    return f"{name}.bfloat16"


def _narrowed(node: Node, rounded: set[str]) -> Node:
    if node.outputs[0] not in rounded or (node.operator not in MAKERS and node.operator != "Concat"):
        return node
    return replace(node, attributes={**node.attributes, RESULT: BF16})


def _rounds(network: Network, user: Node, name: str, rounded: set[str]) -> bool:
    """Whether an operator takes a value in bfloat16 alone."""
    places = [place for place, other in enumerate(user.inputs) if other == name]
    if user.operator == "Conv":
        weights = network.constants.get(user.inputs[1])
        if user.attributes.get(EXACT) and user.outputs[0] not in rounded:
            return False
        return places == [0] and weights is not None and weights.ndim == 4
    if user.operator in ("Gemm", "MatMul"):
        return max(places) < 2
    if user.operator == "Attention":
        return FUSED in user.attributes
    if len([output for output in user.outputs if output]) > 1 or user.outputs[0] not in rounded:
        return False
    return user.operator == "Concat" or (user.operator in CHOOSING and places == [0])
