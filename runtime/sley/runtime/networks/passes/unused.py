"""Operators whose results nobody uses are left out, and so are constants, and second results of some operators."""

from __future__ import annotations

from dataclasses import replace

from sley.runtime.networks.graph import Network, Node

OPTIONAL = ("Dropout", "LayerNormalization", "MaxPool")
"""Operators that may have their first result alone."""


def leave_out_unused(network: Network) -> Network:
    """Runs the pass."""
    needed = set(network.outputs)
    nodes: list[Node] = []
    for node in reversed(network.nodes):
        if needed & set(node.outputs):
            if node.operator in OPTIONAL and not needed & set(node.outputs[1:]):
                node = replace(node, outputs=node.outputs[:1])
            nodes.append(node)
            needed |= set(node.inputs)
    constants = {name: value for name, value in network.constants.items() if name in needed}
    return network.with_nodes(nodes[::-1], constants)
