"""Quantised networks for tests, as frameworks export them, and what integers give, computed apart from the passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from sley.runtime import Device
from sley.runtime.frameworks.from_onnx.fold import fold
from sley.runtime.frameworks.from_onnx.importer import read_model
from sley.runtime.networks.compilation import CompiledNetwork, compile_network

Array = NDArray[Any]
INT8, UINT8 = np.dtype(np.int8), np.dtype(np.uint8)
NUMBERS = {INT8: TensorProto.INT8, UINT8: TensorProto.UINT8, np.dtype(np.float32): TensorProto.FLOAT}


@dataclass
class Model:
    """A model of ONNX while it is built: methods add operators, and return the name of what they make."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)

    def input(self, name: str, shape: tuple[int, ...], dtype: Any = np.float32) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, NUMBERS[np.dtype(dtype)], shape))
        return name

    def constant(self, value: Any, dtype: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def quantize(self, x: str, scale: float, zero: int, dtype: Any = INT8) -> str:
        return self.node("QuantizeLinear", x, self.constant(scale, np.float32), self.constant(zero, dtype))

    def dequantize(self, x: str, scale: Any, zero: Any, dtype: Any = INT8, **attributes: Any) -> str:
        return self.node(
            "DequantizeLinear", x, self.constant(scale, np.float32), self.constant(zero, dtype), **attributes
        )

    def quantized(self, x: str, scale: float, zero: int, dtype: Any = INT8) -> str:
        return self.dequantize(self.quantize(x, scale, zero, dtype), scale, zero, dtype)

    def weights(self, values: Array, scale: Any, axis: int) -> str:
        zero = np.zeros(np.shape(scale), values.dtype)
        return self.dequantize(self.constant(values, values.dtype), scale, zero, values.dtype, axis=axis)

    def made(self, *outputs: tuple[str, Any]) -> onnx.ModelProto:
        infos = [helper.make_tensor_value_info(name, NUMBERS[np.dtype(dtype)], None) for name, dtype in outputs]
        graph = helper.make_graph(self.nodes, "quantised", self.inputs, infos, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model)


def rounded(sums: Array, bias: Array, scale: Array, zero: int, low: int = -128, high: int = 127) -> Array:
    """int8 of exact sums: one product in fp32, rounded half to even, plus the zero point. ``bias``, ``scale``:
    broadcast."""
    total = sums + bias
    assert abs(total).max() < 1 << 31
    real = np.rint(total.astype(np.float32) * scale.astype(np.float32))
    return np.clip(real.astype(np.float64) + zero, low, high).astype(np.int8)


def convolution(
    x: Array,
    w: Array,
    zero: int,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    group: int = 1,
) -> Array:
    """Exact sums of (x - zero) · w, [images, channels, y, x] and [outputs, channels / groups, y, x]."""
    top, left, bottom, right = pads
    wide = np.pad(x.astype(np.int64) - zero, ((0, 0), (0, 0), (top, bottom), (left, right)))
    images, outputs = x.shape[0], w.shape[0]
    sides = [(wide.shape[2 + n] - (w.shape[2 + n] - 1) * dilations[n] - 1) // strides[n] + 1 for n in range(2)]
    total = np.zeros((images, outputs, *sides), np.int64)
    inside, outside = w.shape[1], outputs // group
    for g in range(group):
        for i, j in np.ndindex(*w.shape[2:]):
            y, z = i * dilations[0], j * dilations[1]
            seen = wide[:, g * inside : (g + 1) * inside, y:, z:][:, :, :: strides[0], :: strides[1]]
            seen = seen[:, :, : sides[0], : sides[1]]
            part = w[g * outside : (g + 1) * outside, :, i, j].astype(np.int64)
            total[:, g * outside : (g + 1) * outside] += np.einsum("nchw,oc->nohw", seen, part)
    return total


def compiled(model: onnx.ModelProto, device: Device) -> CompiledNetwork:
    return compile_network(read_model(model), device, fold)


def operators(network: CompiledNetwork) -> list[str]:
    return [node.operator for node in network.network.nodes]
