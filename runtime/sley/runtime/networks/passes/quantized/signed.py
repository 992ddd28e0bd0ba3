"""uint8 becomes int8, 128 less, and so do zero points: integers stand for the same reals.

The array multiplies int8 alone. Inputs and outputs of the network keep their type; the device holds them 128 less.
Products and convolutions of integers less zero points see the same differences. What takes uint8 as numbers, and not as
quantised reals, is refused: the device has no such type.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sley.runtime.networks.graph import Array, Network, Node, TensorType
from sley.runtime.networks.passes.quantized.moves import MOVES
from sley.runtime.networks.passes.quantized.parameters import INT8
from sley.runtime.networks.registry import UnsupportedOperator

UINT8 = np.dtype(np.uint8)
FLOAT_NUMBER, UINT8_NUMBER, INT8_NUMBER = 1, 2, 3
"""float32, uint8 and int8 in ONNX's numbers of types."""
SHIFT = 128
TAKE = (
    *MOVES,
    "QuantizedAttention",
    "QuantizedConv",
    "QuantizedMatMul",
    "QuantizedPool",
    "CentredMatMul",
    "Region",
    "Clip",
)
"""Operators that take integers as they are; what this pass has made may come again, from a file."""
PRODUCTS = {"ConvInteger": ((0, 2), (1, 3)), "MatMulInteger": ((0, 2), (1, 3)), "QLinearMatMul": ((0, 2), (3, 5))}
"""Operators that take zero points off integers: places of both. QLinearMatMul is one of scales that the network
computes."""
QLINEAR_ZERO = 7
"""The place of the zero point of QLinearMatMul's result."""


def make_signed(network: Network) -> Network:
    """Runs the pass. Raises ``UnsupportedOperator``, with all operators that take uint8 as numbers."""
    return _Signed(network).run()


class _Signed:
    """The new network while it grows. ``shifted``: values that are uint8 and held as int8."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.constants, self.types = dict(network.constants), dict(network.types)
        given = {name: type for name, type in network.inputs.items() if name not in network.constants}
        self.shifted = {name for name, type in given.items() if type.dtype == UINT8}
        self.refused: list[str] = []

    def run(self) -> Network:
        nodes = [self._node(node) for node in self.network.nodes]
        if self.refused:
            lines = "\n  ".join(self.refused)
            raise UnsupportedOperator(f"{self.network.name!r} has uint8, which the device has not, in\n  {lines}")
        return replace(self.network.with_nodes(nodes, self.constants), types=self.types)

    def _node(self, node: Node) -> Node:
        if node.operator == "QuantizeLinear":
            return self._quantize(node)
        if node.operator == "DequantizeLinear":
            return self._dequantize(node)
        if node.operator == "DynamicQuantizeLinear":
            for output in (node.outputs[0], *node.outputs[2:]):
                self._shift(output)
            return node
        if node.operator in PRODUCTS and any(self._is_unsigned(name) for name in node.inputs if name):
            return self._product(node)
        if not any(self._is_unsigned(name) for name in node.inputs):
            return node
        if node.operator == "Cast" and node.attributes["to"] == FLOAT_NUMBER:
            scale, zero = (
                self._constant(node, part, value)
                for part, value in (("scale", np.array(1, np.float32)), ("zero", np.array(-SHIFT, INT8)))
            )
            return replace(node, operator="DequantizeLinear", inputs=(node.inputs[0], scale, zero), attributes={})
        if node.operator not in TAKE:
            self.refused.append(str(node))
            return node
        own = node.operator not in MOVES
        for name in node.outputs if not own else ():
            self._shift(name)
        return node if own else replace(node, inputs=tuple(self._signed(name) for name in node.inputs))

    def _is_unsigned(self, name: str) -> bool:
        known = self.constants.get(name)
        return name in self.shifted or (known is not None and known.dtype == UINT8)

    def _shift(self, name: str) -> None:
        self.shifted.add(name)
        if name in self.types:
            self.types[name] = TensorType(INT8, self.types[name].shape)

    def _product(self, node: Node) -> Node:
        """Integers and their zero points 128 less; without a zero point it is -128 then."""
        inputs = [*node.inputs, *[""] * 4]
        for number, (place, zero_place) in enumerate(PRODUCTS[node.operator]):
            if self._is_unsigned(inputs[place]):
                zero = inputs[zero_place]
                signed = self._signed(zero) if zero else self._constant(node, f"zero{number}", np.array(-SHIFT, INT8))
                inputs[place], inputs[zero_place] = self._signed(inputs[place]), signed
        if node.operator == "QLinearMatMul" and self._is_unsigned(inputs[QLINEAR_ZERO]):
            inputs[QLINEAR_ZERO] = self._signed(inputs[QLINEAR_ZERO])
            self._shift(node.outputs[0])
        while inputs and not inputs[-1]:
            inputs.pop()
        return replace(node, inputs=tuple(inputs))

    def _quantize(self, node: Node) -> Node:
        if len(node.inputs) > 2 and node.inputs[2] in self.shifted:
            self._shift(node.outputs[0])
            return node
        zero = self.constants.get(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
        kind = node.attributes.get("output_dtype", 0) or UINT8_NUMBER
        if (zero is None and kind != UINT8_NUMBER) or (zero is not None and zero.dtype != UINT8):
            return node
        if len(node.inputs) > 2 and node.inputs[2] and zero is None:
            return node
        self._shift(node.outputs[0])
        scale = self.constants.get(node.inputs[1])
        zeros = zero if zero is not None else np.zeros(() if scale is None else scale.shape, np.uint8)
        attributes = {name: value for name, value in node.attributes.items() if name != "output_dtype"}
        inputs = (*node.inputs[:2], self._constant(node, "zero", less(zeros)))
        return replace(node, inputs=inputs, attributes=attributes)

    def _dequantize(self, node: Node) -> Node:
        if not self._is_unsigned(node.inputs[0]):
            return node
        if len(node.inputs) > 2 and node.inputs[2] in self.shifted:
            return replace(node, inputs=(self._signed(node.inputs[0]), *node.inputs[1:]))
        zero = self.constants.get(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
        if zero is not None and zero.dtype == INT8:
            return node  # of a network that this pass has seen before
        scale = self.constants.get(node.inputs[1])
        zeros = zero if zero is not None else np.zeros(() if scale is None else scale.shape, np.uint8)
        return replace(
            node, inputs=(self._signed(node.inputs[0]), node.inputs[1], self._constant(node, "zero", less(zeros)))
        )

    def _signed(self, name: str) -> str:
        """The value as int8; a constant is another one then."""
        known = self.constants.get(name)
        if known is None or known.dtype != UINT8:
            return name
        self.constants[f"{name}.signed"] = np.asarray(less(known))
        return f"{name}.signed"

    def _constant(self, node: Node, part: str, value: Array) -> str:
        name = f"{node.outputs[0]}.{part}"
        self.constants[name] = np.asarray(value)
        return name


def less(values: Array) -> Array:
    """uint8 as int8, 128 less."""
    return (values ^ np.uint8(SHIFT)).view(INT8)


def more(values: Array) -> Array:
    """int8 as uint8, 128 more."""
    return values.view(UINT8) ^ np.uint8(SHIFT)
