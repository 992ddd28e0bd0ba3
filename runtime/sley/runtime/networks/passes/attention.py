"""Attention in steps becomes one operator: a product with transposed keys, a factor, a softmax, a product with values.

Frameworks export softmax(scale · q · k^T) · v as products and what is between them, with the factor in front of the
product, behind it, or half of it on each of its operands. Masks stay in steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node, TensorType
from sley.runtime.networks.passes.unused import leave_out_unused

FUSED = "fused"
"""The attribute of such an operator: at precision "medium" it takes bfloat16, as its products did."""
FACTORS = ("Mul", "Div")
Shape = tuple[int, ...]


def fuse_attention(network: Network) -> Network:
    """Runs the pass."""
    uses, constants, types = network.uses(), dict(network.constants), dict(network.types)
    makers = {name: node for node in network.nodes for name in node.outputs}
    replaced: dict[str, list[Node]] = {}
    for node in network.nodes:
        found = _found(network, node, makers, uses)
        if found is not None:
            replaced[node.outputs[0]] = found.nodes(node, constants, types)
    if not replaced:
        return network
    nodes = [new for node in network.nodes for new in replaced.get(node.outputs[0], [node])]
    return leave_out_unused(replace(network.with_nodes(nodes, constants), types=types))


@dataclass(frozen=True)
class _Attention:
    """What is fused. ``arrays``: queries, keys as rows, values, and their ``shapes`` as products take them, all of
    three or four axes. ``result``: that of the last product."""

    arrays: tuple[str, str, str]
    shapes: tuple[Shape, Shape, Shape]
    result: Shape
    scale: float

    def nodes(self, last: Node, constants: dict[str, Array], types: dict[str, TensorType]) -> list[Node]:
        """The operators in the place of the last product: attention, of arrays with four axes."""
        made, inputs, name = list[Node](), list[str](), last.outputs[0]

        def reshaped(source: str, wanted: Shape, into: str) -> None:
            constants[f"{into}.shape"] = np.array(wanted, np.int64)
            made.append(Node("Reshape", (source, f"{into}.shape"), (into,), {}, last.name, 13))

        for array, shape, part in zip(self.arrays, self.shapes, ("queries", "keys", "values"), strict=True):
            wanted = _of_four(shape)
            inputs.append(array if types[array].shape == wanted else f"{name}.{part}")
            if inputs[-1] != array:
                types[inputs[-1]] = TensorType(types[array].dtype, wanted)
                reshaped(array, wanted, inputs[-1])
        attributes = {"scale": self.scale, FUSED: 1}
        own = name if len(self.result) == 4 else f"{name}.heads"
        made.append(Node("Attention", tuple(inputs), (own,), attributes, last.name, 23))
        if own != name:
            types[own] = TensorType(np.dtype(np.float32), _of_four(self.result))
            reshaped(own, self.result, name)
        return made


def _of_four(shape: Shape) -> Shape:
    return (1,) * (4 - len(shape)) + shape


def _found(network: Network, last: Node, makers: dict[str, Node], uses: dict[str, list[Node]]) -> _Attention | None:
    """The attention that a product ends, if it is one."""
    softmax = makers.get(last.inputs[0]) if last.operator == "MatMul" and len(last.inputs) == 2 else None
    if softmax is None or softmax.operator != "Softmax" or not network.alone(softmax.outputs[0], uses):
        return None
    scores, behind = _without_factors(network, softmax.inputs[0], makers, uses)
    product, shape = makers.get(scores), _shape(network, scores)
    if product is None or product.operator != "MatMul" or len(product.inputs) != 2 or not network.alone(scores, uses):
        return None
    if shape is None or len(shape) not in (3, 4) or softmax.attributes.get("axis", -1) not in (-1, len(shape) - 1):
        return None
    queries, before = _without_factors(network, product.inputs[0], makers, uses)
    turned, beside = _without_factors(network, product.inputs[1], makers, uses)
    keys, values = _turned_back(network, turned, makers), last.inputs[1]
    of_queries, of_turned, of_values = (_shape(network, name) for name in (queries, turned, values))
    if keys is None or of_queries is None or of_turned is None or of_values is None:
        return None
    if (*of_queries[:-1], of_turned[-1]) != shape or of_values[:-1] != (*shape[:-2], shape[-1]):
        return None
    scale = behind * before * beside
    if scale <= 0 or any(network.types[name].dtype != np.float32 for name in (queries, keys, values)):
        return None
    shapes = of_queries, (*of_turned[:-2], of_turned[-1], of_turned[-2]), of_values
    result = (*shape[:-1], of_values[-1])
    return _Attention((queries, keys, values), shapes, result, scale)


def _without_factors(
    network: Network, name: str, makers: dict[str, Node], uses: dict[str, list[Node]]
) -> tuple[str, float]:
    """What an array is, times a number, and that number."""
    factor = 1.0
    while True:
        node = makers.get(name)
        if node is None or node.operator not in FACTORS or not network.alone(name, uses):
            return name, factor
        known = [number for number, value in enumerate(node.inputs) if _number(network, value) is not None]
        if not known or (node.operator == "Div" and known != [1]):
            return name, factor
        number = _number(network, node.inputs[known[0]])
        assert number is not None
        factor *= number if node.operator == "Mul" else 1 / number
        name = node.inputs[1 - known[0]]


def _number(network: Network, name: str) -> float | None:
    """The only element of a constant of floats that is neither 0 nor an end."""
    value = network.constants.get(name)
    if value is None or value.size != 1 or value.dtype != np.float32:
        return None
    number = float(value.reshape(()))
    return number if number and math.isfinite(number) else None


def _turned_back(network: Network, name: str, makers: dict[str, Node]) -> str | None:
    """The array whose last two axes are exchanged in this one, behind a reshape of the axes in front of them."""
    shape, node = _shape(network, name), makers.get(name)
    if node is not None and node.operator == "Reshape" and shape is not None:
        inner = _shape(network, node.inputs[0])
        if inner is None or inner[-2:] != shape[-2:]:
            return None
        node = makers.get(node.inputs[0])
    if node is None or node.operator != "Transpose":
        return None
    order = list(node.attributes.get("perm", ()))
    rank = len(order)
    return node.inputs[0] if rank > 1 and order == [*range(rank - 2), rank - 1, rank - 2] else None


def _shape(network: Network, name: str) -> Shape | None:
    type = network.types.get(name, network.inputs.get(name))
    if type is None or type.shape is None or not all(isinstance(size, int) for size in type.shape):
        return None
    return tuple(int(size) for size in type.shape if isinstance(size, int))
