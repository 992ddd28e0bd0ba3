"""Operators whose results nobody uses are left out, and so are constants."""

from __future__ import annotations

from sley.runtime.networks.graph import Network, Node


def leave_out_unused(network: Network) -> Network:
    """Runs the pass."""
    needed = set(network.outputs)
    nodes: list[Node] = []
    for node in reversed(network.nodes):
        if needed & set(node.outputs):
            nodes.append(node)
            needed |= set(node.inputs)
    constants = {name: value for name, value in network.constants.items() if name in needed}
    return network.with_nodes(nodes[::-1], constants)
