"""ONNX models as networks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.inliner
import onnx.shape_inference
import onnx.version_converter
from numpy.typing import NDArray
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from sley.driver import BadRequest
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.registry import UnsupportedOperator, handlers

OLDEST = 13
"""The first opset whose operators are read as they are; models with an older one are converted by onnx."""

PACKED = {np.dtype(ml_dtypes.int4): np.dtype(np.int8), np.dtype(ml_dtypes.uint4): np.dtype(np.uint8)}
"""Types of 4 bits, and what their numbers are kept in."""

DOMAINS = ("", "ai.onnx", "ai.onnx.preview.training", "sley")
"""Whose operators the device knows."""


def read_model(model: ModelProto | str | Path) -> Network:
    """A model, or a file of one, as a network. Raises ``BadRequest``, ``UnsupportedOperator``."""
    if not isinstance(model, ModelProto):
        model = onnx.load(str(model))
    versions = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    if versions.get("ai.onnx", OLDEST) < OLDEST:
        model = _converted(model, versions["ai.onnx"])
    model = onnx.inliner.inline_local_functions(model)
    version = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}.get("ai.onnx", OLDEST)
    return replace(_network(model.graph, version, tensor_type), types=_types(model))


def _network(graph: GraphProto, version: int, read: Callable[[ValueInfoProto], TensorType]) -> Network:
    constants = {one.name: unpacked(numpy_helper.to_array(one)) for one in graph.initializer}
    nodes = [node for proto in graph.node for node in _nodes(proto, version)]
    _check_packed(graph)
    inputs = {value.name: read(value) for value in graph.input if value.name not in constants}
    outputs = {value.name: read(value) for value in graph.output}
    return Network(graph.name, inputs, outputs, nodes, constants)


def _types(model: ModelProto) -> dict[str, TensorType]:
    """Types of values between operators, as onnx infers them; of none, with a warning, if it cannot."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:  # of any kind, as it comes from onnx's C++
        warnings.warn(
            f"onnx cannot infer the types of {model.graph.name!r}, so element-wise operators stay apart: {error}",
            stacklevel=2,
        )
        return {}
    return {value.name: tensor_type(value) for value in inferred.graph.value_info if value.type.HasField("tensor_type")}


def _converted(model: ModelProto, version: int) -> ModelProto:
    try:
        return onnx.version_converter.convert_version(model, OLDEST)
    except Exception as error:  # of any kind, as it comes from onnx's C++
        raise BadRequest(f"the model has opset {version}, which onnx cannot convert to {OLDEST}: {error}") from None


def _nodes(proto: NodeProto, version: int) -> list[Node]:
    name = proto.op_type if proto.domain in DOMAINS else f"{proto.domain}.{proto.op_type}"
    attributes = {attribute.name: _attribute(attribute, version) for attribute in proto.attribute}
    return [Node(name, tuple(proto.input), tuple(proto.output), attributes, proto.name, version)]


def _attribute(attribute: AttributeProto, version: int) -> Any:
    value = helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.TENSOR:
        return unpacked(numpy_helper.to_array(value))
    if attribute.type == AttributeProto.GRAPH:
        return _network(value, version, _any_type)
    if attribute.type == AttributeProto.STRING:
        return value.decode()
    if attribute.type == AttributeProto.STRINGS:
        return [one.decode() for one in value]
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return list(value)
    return value


def unpacked(values: NDArray[Any]) -> NDArray[Any]:
    """Integers of 4 bits as int8 or uint8, of the same numbers."""
    wide = PACKED.get(values.dtype)
    return values if wide is None else values.astype(wide)


def _check_packed(graph: GraphProto) -> None:
    """Integers of 4 bits are weights for DequantizeLinear, and nothing else. Raises ``UnsupportedOperator``."""
    tensors = {one.name: one.data_type for one in graph.initializer}
    for node in graph.node:
        held = [one.t.data_type for one in node.attribute if one.type == AttributeProto.TENSOR]
        if node.op_type == "Constant" and held:
            tensors[node.output[0]] = held[0]
    for node in graph.node:
        found = [name for name in node.input if tensors.get(name) in (TensorProto.INT4, TensorProto.UINT4)]
        if found and node.op_type != "DequantizeLinear":
            raise UnsupportedOperator(
                f"{node.op_type} {node.name!r} takes {found[0]}, of 4 bits; the device has such numbers for "
                "DequantizeLinear alone, as weights"
            )


def _any_type(value: ValueInfoProto) -> TensorType:
    """Of values of subgraphs, whose types are those of what they are given."""
    return TensorType(np.dtype(np.void), None)


def tensor_type(value: ValueInfoProto) -> TensorType:
    """The type of an input or output. Raises ``BadRequest`` for one that is no tensor."""
    type: TypeProto = value.type
    if not type.HasField("tensor_type"):
        raise BadRequest(f"{value.name} is no tensor; the device has no sequences, maps or options")
    kind = np.dtype(helper.tensor_dtype_to_np_dtype(type.tensor_type.elem_type))
    if not type.tensor_type.HasField("shape"):
        return TensorType(kind, None)
    sides = [
        side.dim_value if side.HasField("dim_value") else side.dim_param or None for side in type.tensor_type.shape.dim
    ]
    return TensorType(kind, tuple(sides))


def supported(operator: str) -> bool:
    """Whether the device has an operator."""
    return operator in handlers()
