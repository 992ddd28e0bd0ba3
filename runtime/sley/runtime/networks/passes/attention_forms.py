"""Where a network has attention: one operator, or a product, a softmax and a product, as exporters write it.

    softmax(scale · q · k^T + mask) · v

The factor may be behind the first product or in front of it, of q, of k or of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sley.runtime.networks.graph import Network, Node

TAKEN = ("scale", "is_causal", "q_num_heads", "kv_num_heads")
"""Attributes of ONNX's Attention that change what is computed; others must not be there, or 0."""


@dataclass(frozen=True)
class FoundAttention:
    """An attention.

    Attributes
    ----------
    nodes: its operators, the last of which makes its result. q, k, v, mask: names of values; mask "" without one.
    scale: ``None`` for 1 / sqrt(dim). causal: query i sees keys 0 to i. turned: k is [..., dim, keys]. heads: of q and
        k where they are one axis with dim.
    """

    nodes: tuple[Node, ...]
    q: str
    k: str
    v: str
    mask: str = ""
    scale: float | None = None
    causal: bool = False
    turned: bool = False
    heads: tuple[int, int] | None = None

    @property
    def output(self) -> str:
        return self.nodes[-1].outputs[0]


def attentions_of(network: Network) -> list[FoundAttention]:
    """All of them, in their order."""
    finder = _Finder(network)
    return [found for node in network.nodes for found in finder.ends(node)]


class _Finder:
    def __init__(self, network: Network) -> None:
        self.network, self.uses = network, network.uses()
        self.makers = {name: node for node in network.nodes for name in node.outputs}

    def ends(self, node: Node) -> Iterator[FoundAttention]:
        """The attention whose result an operator makes, if it does."""
        if node.operator == "Attention":
            others = {name for name, value in node.attributes.items() if value and name not in TAKEN}
            if len(node.inputs) <= 4 and len(node.outputs) == 1 and not others:
                yield self._operator(node)
        elif node.operator == "MatMul" and len(node.inputs) == 2:
            found = self._products(node)
            if found is not None:
                yield found

    def _operator(self, node: Node) -> FoundAttention:
        q, k, v, mask = (*node.inputs, "")[:4]
        given = node.attributes
        heads = (given["q_num_heads"], given["kv_num_heads"]) if "q_num_heads" in given else None
        scale = given.get("scale")
        return FoundAttention((node,), q, k, v, mask, scale, bool(given.get("is_causal", 0)), False, heads)

    def _products(self, last: Node) -> FoundAttention | None:
        softmax = self._maker(last.inputs[0])
        if softmax is None or softmax.operator != "Softmax" or softmax.attributes.get("axis", -1) != -1:
            return None
        nodes, mask, scale, name = [last, softmax], "", 1.0, softmax.inputs[0]
        while True:
            node = self._maker(name)
            if node is None:
                return None
            if node.operator == "MatMul" and len(node.inputs) == 2:
                break
            nodes.append(node)
            if node.operator == "Add" and not mask and scale == 1:
                (name, mask), found = self._sides(node)
                if not found:
                    return None
            else:
                before = self._factor(node)
                if before is None:
                    return None
                name, scale = before[0], scale * before[1]
        nodes.append(node)
        operands = []
        for operand in node.inputs:
            maker = self._maker(operand)
            before = None if maker is None else self._factor(maker)
            if maker is not None and before is not None:
                nodes.append(maker)
                operand, scale = before[0], scale * before[1]
            operands.append(operand)
        (q, k), v = operands, last.inputs[1]
        if scale <= 0 or {q, k, v} & set(self.network.constants):
            return None
        return FoundAttention(tuple(nodes[::-1]), q, k, v, mask, scale, False, True)

    def _maker(self, name: str) -> Node | None:
        """Of a value that nobody else uses."""
        return self.makers.get(name) if self.network.alone(name, self.uses) else None

    def _sides(self, add: Node) -> tuple[tuple[str, str], bool]:
        """Scores and the mask that is added to them."""
        for score, mask in (add.inputs, add.inputs[::-1]):
            maker = self._maker(score)
            while maker is not None and self._factor(maker) is not None:
                maker = self._maker(maker.inputs[0])
            if maker is not None and maker.operator == "MatMul":
                return (score, mask), True
        return ("", ""), False

    def _factor(self, node: Node) -> tuple[str, float] | None:
        """What is multiplied or divided by one number, and by which."""
        if node.operator not in ("Mul", "Div") or len(node.inputs) != 2:
            return None
        for name, other in (node.inputs, node.inputs[::-1]):
            known = self.network.constants.get(other)
            if known is not None and known.size == 1 and name not in self.network.constants:
                factor = float(known.item())
                if node.operator == "Mul":
                    return name, factor
                return (name, 1 / factor) if factor and other == node.inputs[1] else None
        return None
