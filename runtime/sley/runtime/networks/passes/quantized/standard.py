"""Operators on quantised values become operators on reals between DequantizeLinear and QuantizeLinear.

So there is one form, in which the passes behind this one find what runs on integers: those of ONNX, QLinearConv and
QLinearMatMul, and those of the domain com.microsoft, which onnxruntime's quantiser makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node, TensorType

FLOAT = np.dtype(np.float32)
MICROSOFT = "com.microsoft."
Quantised = tuple[str, str, str]
"""Integers, their scale and their zero point."""


@dataclass(frozen=True)
class Form:
    """An operator on reals, and how it is written of quantised values.

    Attributes
    ----------
    inputs: how many there are, each with its scale and zero point; those of the result are behind them. bias: the place
        of one of int32. weights: whether the outputs of the second input may have scales. dropped: attributes.
    """

    operator: str
    inputs: int = 1
    bias: int | None = None
    weights: bool = False
    dropped: tuple[str, ...] = ()


FORMS = {
    "QLinearConv": Form("Conv", 2, 8, True),
    "QLinearMatMul": Form("MatMul", 2, None, True),
    f"{MICROSOFT}QGemm": Form("Gemm", 2, 6, True),
    f"{MICROSOFT}QLinearAdd": Form("Add", 2),
    f"{MICROSOFT}QLinearAveragePool": Form("AveragePool", dropped=("channels_last",)),
    f"{MICROSOFT}QLinearGlobalAveragePool": Form("GlobalAveragePool", dropped=("channels_last",)),
    f"{MICROSOFT}QLinearLeakyRelu": Form("LeakyRelu"),
    f"{MICROSOFT}QLinearMul": Form("Mul", 2),
    f"{MICROSOFT}QLinearSigmoid": Form("Sigmoid"),
    f"{MICROSOFT}QLinearSoftmax": Form("Softmax", dropped=("opset",)),
}
CONCAT = f"{MICROSOFT}QLinearConcat"
"""The scale and the zero point of its result come first."""
SAME = {f"{MICROSOFT}{name}": name for name in ("DequantizeLinear", "QuantizeLinear")}
"""Operators of that domain that ONNX has, too."""


def as_standard(network: Network) -> Network:
    """Runs the pass."""
    if not any(node.operator in (*FORMS, *SAME, CONCAT) for node in network.nodes):
        return network
    return _Standard(network).run()


class _Standard:
    """The new network while it grows."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.constants, self.types = dict(network.constants), dict(network.types)

    def run(self) -> Network:
        nodes = [new for node in self.network.nodes for new in self._nodes(node)]
        return replace(self.network.with_nodes(nodes, self.constants), types=self.types)

    def _nodes(self, node: Node) -> list[Node]:
        if node.operator in SAME:
            return [replace(node, operator=SAME[node.operator])]
        inputs, bias = list(node.inputs), ""
        if node.operator == CONCAT:
            form, result, inputs = Form("Concat"), inputs[:2], inputs[2:]
        elif node.operator in FORMS and not node.attributes.get("channels_last", 0):
            form = FORMS[node.operator]
            if form.bias is not None and form.bias < len(inputs):
                bias = inputs.pop(form.bias)
            inputs, result = inputs[: 3 * form.inputs], inputs[3 * form.inputs :]
        else:
            return [node]
        quantised = list(zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True))
        numbers = [*inputs[1::3], *inputs[2::3], *result]
        if not all(name in self.constants for name in numbers if name):
            return [node]
        return self._made(node, form, quantised, tuple(result), bias)

    def _made(
        self, node: Node, form: Form, quantised: Sequence[Quantised], result: tuple[str, ...], bias: str
    ) -> list[Node]:
        """DequantizeLinear of each, the operator, and QuantizeLinear, if the result is not real."""
        nodes, operands, made = [], [], node.outputs[0]
        for number, one in enumerate(quantised):
            attributes = {"axis": self._axis(node, form, one[0])} if form.weights and number else {}
            operands.append(f"{made}.operand{number}")
            nodes.append(_real(node, one, operands[-1], attributes))
        if bias:
            operands.append(f"{made}.bias")
            numbers = self._of_bias(quantised[0][1], quantised[1][1], operands[-1])
            nodes.append(_real(node, (bias, *numbers), operands[-1], {"axis": 0}))
        self.types |= dict.fromkeys(operands, TensorType(FLOAT, None))
        kept = {name: value for name, value in node.attributes.items() if name not in form.dropped}
        whole = bool(result and result[0])
        output = f"{made}.real" if whole else made
        nodes.append(replace(node, operator=form.operator, inputs=tuple(operands), outputs=(output,), attributes=kept))
        if whole:
            name = f"{node.name}.quantised"
            nodes.append(Node("QuantizeLinear", (output, *result), node.outputs, {}, name, node.version))
            known = self.types.get(made, self.network.outputs.get(made))
            self.types[output] = TensorType(FLOAT, None if known is None else known.shape)
        return nodes

    def _axis(self, node: Node, form: Form, weights: str) -> int:
        """Of outputs, which may have scales."""
        if form.operator == "Conv" or node.attributes.get("transB", 0):
            return 0
        return self.constants[weights].ndim - 1 if weights in self.constants else 1

    def _of_bias(self, x: str, w: str, name: str) -> tuple[str, str]:
        """The scale and the zero point of a bias: what one product stands for."""
        scale: Array = (self.constants[x].astype(np.float64) * self.constants[w]).astype(np.float32)
        self.constants |= {f"{name}.scale": scale, f"{name}.zero": np.zeros(scale.shape, np.int32)}
        return f"{name}.scale", f"{name}.zero"


def _real(node: Node, inputs: Sequence[str], output: str, attributes: dict[str, Any]) -> Node:
    return Node("DequantizeLinear", tuple(inputs), (output,), attributes, f"{node.name}.real", node.version)
