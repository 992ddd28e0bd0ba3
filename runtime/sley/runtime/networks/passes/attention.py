"""Attention in steps becomes one operator, and is marked where it is one: a product with transposed keys, a softmax and
a product with values, of float32 and without a mask, and factors in front of the first product or behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node, TensorType
from sley.runtime.networks.passes.attention_forms import FoundAttention, attentions_of
from sley.runtime.networks.passes.unused import leave_out_unused

FUSED = "fused"
"""The attribute of such an operator: at precision "medium" it takes bfloat16, as its products would."""
Shape = tuple[int, ...]
Types = Mapping[str, TensorType]


def fuse_attention(network: Network) -> Network:
    """Runs the pass."""
    constants, types = dict(network.constants), {**network.inputs, **network.types}
    makers = {name: node for node in network.nodes for name in node.outputs}
    replaced: dict[str, list[Node]] = {}
    for found in attentions_of(network):
        if found.mask or found.heads is not None:
            continue
        last = found.nodes[-1]
        if not found.turned:
            replaced[found.output] = [_marked(last, types)]
        elif (fused := _fused(found, makers, types)) is not None:
            replaced[found.output] = fused.nodes(last, constants, types)
    if all(nodes == [makers[name]] for name, nodes in replaced.items()):
        return network
    nodes = [new for node in network.nodes for new in replaced.get(node.outputs[0], [node])]
    return leave_out_unused(replace(network.with_nodes(nodes, constants), types=types))


def _marked(node: Node, types: Types) -> Node:
    """ONNX's operator, of float32 and four axes."""
    alike = all(name in types and _is_float(name, types) for name in node.inputs[:3])
    alike = alike and all(len(_shape(name, types)) == 4 for name in node.inputs[:3])
    return replace(node, attributes={**node.attributes, FUSED: 1}) if alike else node


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
            types[own] = TensorType(types[self.arrays[0]].dtype, _of_four(self.result))
            reshaped(own, self.result, name)
        return made


def _of_four(shape: Shape) -> Shape:
    return (1,) * (4 - len(shape)) + shape


def _fused(found: FoundAttention, makers: dict[str, Node], types: Types) -> _Attention | None:
    """Attention in steps whose keys are rows of some array, of types and shapes that are known."""
    keys = _turned_back(found.k, makers, types)
    q, turned, v = (_shape(name, types) for name in (found.q, found.k, found.v))
    if keys is None or any(len(shape) not in (3, 4) for shape in (q, turned, v)):
        return None
    if q[:-2] != turned[:-2] or v[:-1] != (*q[:-2], turned[-1]) or turned[-2] != q[-1]:
        return None
    if not all(_is_float(name, types) for name in (found.q, keys, found.v)):
        return None
    scale = 1.0 if found.scale is None else found.scale
    k = (*turned[:-2], turned[-1], turned[-2])
    return _Attention((found.q, keys, found.v), (q, k, v), (*q[:-1], v[-1]), scale)


def _turned_back(name: str, makers: dict[str, Node], types: Types) -> str | None:
    """The array whose last two axes are exchanged in this one, behind a reshape of the axes in front of them."""
    node = makers.get(name)
    if node is not None and node.operator == "Reshape":
        if _shape(node.inputs[0], types)[-2:] != _shape(name, types)[-2:]:
            return None
        node = makers.get(node.inputs[0])
    if node is None or node.operator != "Transpose":
        return None
    order = list(node.attributes.get("perm", ()))
    rank = len(order)
    return node.inputs[0] if rank > 1 and order == [*range(rank - 2), rank - 1, rank - 2] else None


def _is_float(name: str, types: Types) -> bool:
    return types[name].dtype == np.float32


def _shape(name: str, types: Types) -> Shape:
    """The shape of a value, if all of it is known; else none at all."""
    shape = types[name].shape if name in types else None
    known = tuple(size for size in shape or () if isinstance(size, int))
    return known if shape is not None and len(known) == len(shape) else ()
