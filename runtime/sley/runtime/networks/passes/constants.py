"""Operators on constants alone are computed on the host, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sley.runtime.networks.graph import Array, Network, Node
from sley.runtime.networks.registry import OWN

Fold = Callable[[Node, Sequence[Array | None]], Sequence[Array]]
"""Computes an operator on the host."""
RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
"""Operators whose results are others each time, so they are no constants, whatever their inputs are."""
TRAINED = "Dropout"
"""An operator that is one of those if it has an input more, which says so."""


KEPT = ("DequantizeLinear",)
"""Operators that stay until integers have found the operators that take them, though they are of constants."""


def fold_constants(network: Network, fold: Fold, kept: Sequence[str] = KEPT) -> Network:
    """Runs the pass. ``kept``: operators that stay."""
    constants = dict(network.constants)
    nodes = [node for node in network.nodes if node.operator in kept or not folded(node, constants, fold)]
    return network.with_nodes(nodes, constants)


def draws(node: Node) -> bool:
    """Whether an operator may draw random numbers."""
    return node.operator in RANDOM or (node.operator == TRAINED and len(node.inputs) > 2)


def on_host(node: Node) -> bool:
    """Whether the host computes an operator if its inputs are known."""
    return not draws(node) and not node.operator.startswith(OWN)


def folded(node: Node, constants: dict[str, Array], fold: Fold) -> bool:
    """Whether an operator is of constants alone; its results are then among them."""
    if not on_host(node) or any(name and name not in constants for name in node.inputs):
        return False
    results = fold(node, [constants[name] if name else None for name in node.inputs])
    constants |= {name: value for name, value in zip(node.outputs, results, strict=False) if name}
    return True
