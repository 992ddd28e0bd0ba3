"""What integers stand for: the scale and the zero point of a QuantizeLinear or DequantizeLinear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node

INT8 = np.dtype(np.int8)


@dataclass(frozen=True)
class Integers:
    """Integers in the place of reals: real = scale · (integer - zero point).

    Attributes
    ----------
    name: of the integers. dtype: their type. scale, zero: of one element, or one for each element of ``axis``; scale
        float64, zero int64.
    """

    name: str
    dtype: np.dtype[np.generic]
    scale: Array
    zero: Array
    axis: int | None

    @property
    def whole(self) -> bool:
        """Whether one scale is for all."""
        return self.axis is None

    def like(self, other: Integers) -> bool:
        """Whether the same integers stand for the same reals; of whole ones."""
        same_scale = self.whole and other.whole and np.float32(self.scale) == np.float32(other.scale)
        return bool(same_scale and self.zero == other.zero and self.dtype == other.dtype)


def makers_of(network: Network) -> dict[str, Node]:
    """The operator that makes each value."""
    return {name: node for node in network.nodes for name in node.outputs}


def quantizer(network: Network, node: Node) -> Integers | None:
    """What a QuantizeLinear makes, if its scale and zero point are known; of blocks ``None``."""
    return _integers(network, node, node.outputs[0]) if node.operator == "QuantizeLinear" else None


def dequantizer(network: Network, makers: Mapping[str, Node], name: str) -> Integers | None:
    """The integers that a value is made of by a DequantizeLinear, if their scale and zero point are known."""
    node = makers.get(name)
    if node is None or node.operator != "DequantizeLinear":
        return None
    return _integers(network, node, node.inputs[0])


def _integers(network: Network, node: Node, name: str) -> Integers | None:
    _, scale, zero = (*node.inputs, "")[:3]
    known = network.constants
    if scale not in known or (zero and zero not in known) or node.attributes.get("block_size", 0):
        return None
    if zero:
        dtype, zeros = known[zero].dtype, known[zero].astype(np.int64)
    else:
        dtype = known[name].dtype if name in known else type_of(network, name, np.dtype(np.uint8))
        zeros = np.zeros(known[scale].shape, np.int64)
    if known[scale].size == 1:
        return Integers(name, dtype, known[scale].astype(np.float64).reshape(()), zeros.reshape(()), None)
    return Integers(name, dtype, known[scale].astype(np.float64), zeros, node.attributes.get("axis", 1))


def type_of(network: Network, name: str, unknown: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The type of a value, ``unknown`` if nobody knows it."""
    for types in (network.inputs, network.types, network.outputs):
        if name in types:
            return types[name].dtype
    return unknown
