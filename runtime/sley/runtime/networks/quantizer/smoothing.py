"""Smoothing: what makes activations behind a norm hard to quantise goes into the weights behind it.

A norm that all its users multiply by weights, x · W, may divide each channel of x by a factor that the rows of W are
multiplied by. With factors max|x|^alpha / max|W|^(1 - alpha) both are quantised about equally well (Xiao et al.,
SmoothQuant, 2022).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node
from sley.runtime.networks.passes.constants import Fold
from sley.runtime.networks.quantizer.evaluation import evaluate
from sley.runtime.networks.quantizer.layers import Layer

NORMS = ("LayerNormalization", "RMSNormalization")
ALPHA = 0.5


@dataclass(frozen=True)
class Smoothed:
    """A norm, and all layers that use it."""

    norm: Node
    layers: tuple[Layer, ...]


def smoothed_of(network: Network, layers: Iterable[Layer]) -> list[Smoothed]:
    """Norms with known parameters whose users are layers and nobody else."""
    uses, own = network.uses(), {id(layer.node): layer for layer in layers if layer.linear}
    found = []
    for node in network.nodes:
        if node.operator not in NORMS or any(name and name not in network.constants for name in node.inputs[1:]):
            continue
        users, value = uses.get(node.outputs[0], []), node.outputs[0]
        if value in network.outputs or not users or any(id(user) not in own for user in users):
            continue
        if node.attributes.get("axis", -1) == -1:
            found.append(Smoothed(node, tuple(own[id(user)] for user in users)))
    return found


def smooth(network: Network, layers: Iterable[Layer], data: Iterable[Mapping[str, Array]], fold: Fold) -> Network:
    """The same function with channels of activations and rows of weights scaled against each other."""
    found = smoothed_of(network, layers)
    if not found:
        return network
    largest: dict[str, Array] = {one.norm.outputs[0]: np.zeros(1) for one in found}

    def watch(node: Node, inputs: object, results: object) -> None:
        name = node.outputs[0]
        if name in largest:
            assert isinstance(results, list)
            seen = abs(results[0]).reshape(-1, results[0].shape[-1]).max(0)
            largest[name] = np.maximum(largest[name], seen)

    for batch in data:
        evaluate(network, batch, fold, watch)
    constants = dict(network.constants)
    for one in found:
        rows = [_by_inputs(layer, constants) for layer in one.layers]
        weights = np.max([abs(matrix).max(1) for matrix in rows], axis=0)
        x = np.maximum(largest[one.norm.outputs[0]], 1e-5)
        factors = np.maximum(x**ALPHA / np.maximum(weights, 1e-5) ** (1 - ALPHA), 1e-5)
        for name in one.norm.inputs[1:]:
            if name:
                constants[name] = (constants[name] / factors).astype(np.float32)
        for layer in one.layers:
            name = layer.node.inputs[1]
            side = factors[:, None] if layer.axis == 1 else factors[None, :]
            constants[name] = (constants[name] * side).astype(np.float32)
    return network.with_nodes(network.nodes, constants)


def _by_inputs(layer: Layer, constants: Mapping[str, Array]) -> Array:
    """Weights [inputs, outputs]."""
    matrix = constants[layer.node.inputs[1]]
    return matrix if layer.axis == 1 else matrix.T
