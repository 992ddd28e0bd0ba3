"""Factors and terms of channels behind a batch norm of known values become part of it.

Networks of older frameworks have their scales and shifts as Mul and Add behind a batch norm without them. They are
joined in float64, and rounded once.
"""

from __future__ import annotations

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node


def join_scales(network: Network) -> Network:
    """Runs the pass."""
    uses, constants = network.uses(), dict(network.constants)
    places = {name: place for place, node in enumerate(network.nodes) for name in node.outputs}
    nodes: list[Node | None] = list(network.nodes)
    for place, node in enumerate(network.nodes):
        if node.operator not in ("Mul", "Add"):
            continue
        for product, values in (node.inputs, node.inputs[::-1]):
            maker = nodes[places[product]] if product in places else None
            if maker is None or not network.alone(product, uses) or not _joins(maker, constants):
                continue
            scale, shift = (constants[name].astype(np.float64) for name in maker.inputs[1:3])
            row = _row(constants.get(values), scale.size, network, product)
            if row is None:
                continue
            if node.operator == "Mul":
                scale, shift = scale * row, shift * row
            else:
                shift = shift + row
            names = f"{node.outputs[0]}.scale", f"{node.outputs[0]}.shift"
            kind = constants[maker.inputs[1]].dtype
            constants |= {name: value.astype(kind) for name, value in zip(names, (scale, shift), strict=True)}
            inputs = (maker.inputs[0], *names, *maker.inputs[3:])
            nodes[place] = Node(maker.operator, inputs, node.outputs, maker.attributes, maker.name, maker.version)
            nodes[places[product]] = None
            break
    return network.with_nodes([node for node in nodes if node is not None], constants)


def _joins(maker: Node, constants: dict[str, Array]) -> bool:
    known = all(name in constants for name in maker.inputs[1:])
    return maker.operator == "BatchNormalization" and known and not maker.attributes.get("training_mode", 0)


def _row(values: Array | None, channels: int, network: Network, name: str) -> Array | None:
    """A number for each channel, if the constant has one for each along the second axis of an image."""
    type = network.types.get(name)
    if values is None or type is None or type.shape is None or values.dtype != np.float32:
        return None
    rank = len(type.shape)
    shape = (1,) * (rank - values.ndim) + values.shape
    wanted = (1, channels, *(1 for _ in range(rank - 2)))
    return values.astype(np.float64).ravel() if shape == wanted else None
