"""Operators on the host, by the reference implementation of onnx: for constants and shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from sley.runtime.networks.graph import Node
from sley.runtime.networks.registry import UnsupportedOperator

OLDEST = 13
FIRST = {"DequantizeLinear": 19, "QuantizeLinear": 19}
"""Opsets from which on onnx's reference has an operator; what older ones mean is the same."""


def fold(node: Node, inputs: Sequence[NDArray[Any] | None]) -> list[NDArray[Any]]:
    """The outputs of an operator whose inputs are known. Raises ``UnsupportedOperator``."""
    if node.operator in OURS:
        return [OURS[node.operator](node, *inputs)]
    attributes = {
        name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in node.attributes.items()
    }
    proto = helper.make_node(node.operator, node.inputs, node.outputs, **attributes)
    given = {name: value for name, value in zip(node.inputs, inputs, strict=True) if value is not None}
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in node.outputs if name]
    graph = helper.make_graph([proto], "fold", values, results)
    version = max(node.version, FIRST.get(node.operator, OLDEST))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    try:
        return [np.asarray(value) for value in ReferenceEvaluator(model).run(None, given)]
    except Exception as error:  # of any kind, as it comes from the reference implementation
        raise UnsupportedOperator(f"{node}: onnx cannot compute it of constants: {error}") from None


def gather_elements(node: Node, x: NDArray[Any], numbers: NDArray[Any]) -> NDArray[Any]:
    axis = node.attributes.get("axis", 0) % x.ndim
    inside = x[tuple(slice(None) if n == axis else slice(0, side) for n, side in enumerate(numbers.shape))]
    try:
        return np.take_along_axis(inside, numbers, axis)
    except (IndexError, ValueError) as error:
        raise UnsupportedOperator(f"{node} takes elements that its input of shape {x.shape} lacks: {error}") from None


OURS: dict[str, Callable[..., NDArray[Any]]] = {"GatherElements": gather_elements}
"""Operators that onnx 1.19 computes wrong: of more than 32 elements along the axis it takes the first number alone."""
