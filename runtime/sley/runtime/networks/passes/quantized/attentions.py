"""Attention of quantised values becomes ``QuantizedAttention``, one program on integers.

It takes q, k and v as int8, and a mask. The softmax is one of fp32, weights are bfloat16, as ``nn.quantized_attention``
says. Its result is int8 where a QuantizeLinear follows, maybe behind operators that only move elements, else float32.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node, TensorType
from sley.runtime.networks.passes.attention_forms import FoundAttention, attentions_of
from sley.runtime.networks.passes.quantized.moves import ALONE
from sley.runtime.networks.passes.quantized.parameters import INT8, dequantizer, makers_of, quantizer

NEVER = -1e30
"""What is added to scores that nobody sees is below: -infinity, or the lowest number, as exporters write it. Beside the
score of a key that is seen, either gives a weight of 0."""


def fuse_attentions(network: Network) -> Network:
    """Runs the pass."""
    makers, uses = makers_of(network), network.uses()
    instead: dict[int, list[Node]] = {}
    types = dict(network.types)
    for found in attentions_of(network):
        attributes = _attributes(network, found)
        operands = [dequantizer(network, makers, name) for name in (found.q, found.k, found.v)]
        if attributes is None or any(one is None or not one.whole or one.dtype != INT8 for one in operands):
            continue
        q, k, v = (one for one in operands if one is not None)
        attributes |= {"scales": [float(one.scale) for one in (q, k, v)], "zeros": [int(q.zero), int(v.zero)]}
        inputs = (q.name, k.name, v.name, *([] if attributes["is_causal"] or not found.mask else [found.mask]))
        behind = _behind(network, uses, found.output)
        made = quantizer(network, behind[-1]) if behind else None
        instead |= {id(gone): [] for gone in (*found.nodes, *behind)}
        name = found.nodes[-1].name or found.output
        if made is None:
            node = Node("QuantizedAttention", inputs, (found.output,), attributes, name, found.nodes[-1].version)
            instead[id(found.nodes[-1])] = [node]
            continue
        attributes |= {"out_scale": float(made.scale), "out_zero": int(made.zero)}
        *moves, _ = behind
        results = [f"{node.outputs[0]}.integers" for node in (found.nodes[-1], *moves)]
        results[-1] = made.name
        node = Node("QuantizedAttention", inputs, (results[0],), attributes, name, found.nodes[-1].version)
        moved = [
            replace(move, inputs=(before, *move.inputs[1:]), outputs=(result,))
            for move, (before, result) in zip(moves, pairwise(results), strict=True)
        ]
        for result, old in zip(results[:-1], (found.nodes[-1], *moves), strict=False):
            known = types.get(old.outputs[0])
            types[result] = TensorType(INT8, None if known is None else known.shape)
        instead[id(behind[-1])] = [node, *moved]
    nodes = [new for node in network.nodes for new in instead.get(id(node), [node])]
    return replace(network.with_nodes(nodes), types=types)


def _attributes(network: Network, found: FoundAttention) -> dict[str, Any] | None:
    """``None`` for scores that are scaled by nothing above 0."""
    if found.scale is not None and found.scale <= 0:
        return None
    mask = network.constants.get(found.mask)
    causal = found.causal or (mask is not None and _is_causal(mask))
    if found.causal and found.mask:
        return None
    attributes: dict[str, Any] = {"is_causal": int(causal), "turned": int(found.turned)}
    if found.scale is not None:
        attributes["scale"] = found.scale
    if found.heads is not None:
        attributes["heads"] = list(found.heads)
    return attributes


def _is_causal(mask: Array) -> bool:
    """Whether a mask lets query i see keys 0 to i."""
    if mask.ndim < 2 or any(side != 1 for side in mask.shape[:-2]):
        return False
    seen = np.tri(*mask.shape[-2:]) == 1
    plain = mask.reshape(mask.shape[-2:])
    if mask.dtype == bool:
        return bool((plain == seen).all())
    return bool((plain[seen] == 0).all() and (plain[~seen] < NEVER).all())


def _behind(network: Network, uses: dict[str, list[Node]], name: str) -> list[Node]:
    """Operators that move a value up to the one that quantises it as a whole, to int8; none if it is not quantised."""
    found: list[Node] = []
    while network.alone(name, uses):
        (node,) = uses[name]
        found.append(node)
        if node.operator == "QuantizeLinear":
            made = quantizer(network, node)
            return found if made is not None and made.whole and made.dtype == INT8 else []
        if node.operator not in ALONE or node.operator == "MaxPool" or len(node.outputs) != 1:
            return []
        name = node.outputs[0]
    return []
