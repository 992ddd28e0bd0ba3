"""Norms and softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.images import channels_first, turned
from sley.runtime.networks.operators.order import dense, in_memory_order
from sley.runtime.networks.passes.narrow import RESULT
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn
from sley.runtime.nn.mapping import FP32, mapped
from sley.runtime.tile import language as tile


@operator("Softmax")
def softmax(c: Compilation, node: Node, x: Buffer) -> Buffer:
    return nn.softmax(x, node.attributes.get("axis", -1), stream=c.stream)


@operator("LogSoftmax")
def log_softmax(c: Compilation, node: Node, x: Buffer) -> Buffer:
    return nn.log_softmax(x, node.attributes.get("axis", -1), stream=c.stream)


@operator("Hardmax")
def hardmax(c: Compilation, node: Node, x: Buffer) -> Buffer:
    axis = node.attributes.get("axis", -1) % x.ndim
    places = nn.argmax(x, axis, True, stream=c.stream)
    shape = [x.shape[axis] if number == axis else 1 for number in range(x.ndim)]
    numbers = c.device.array(np.arange(x.shape[axis], dtype=np.int32).reshape(shape))
    return nn.cast(nn.eq(places, numbers, stream=c.stream), x.dtype, stream=c.stream)


@operator("BatchNormalization")
def batch_norm(c: Compilation, node: Node, x: Buffer, scale: Value, bias: Value, mean: Value, var: Value) -> Any:
    """Of known moments one launch: x times a number for each channel, and another one added."""
    eps = node.attributes.get("epsilon", 1e-5)
    training = bool(node.attributes.get("training_mode", 0))
    rows = [value for value in (scale, bias, mean, var) if isinstance(value, np.ndarray)]
    relu, kind = bool(node.attributes.get("relu", 0)), node.attributes.get(RESULT, x.dtype)
    if len(rows) == 4 and not training:
        factor, term, middle, spread = (row.astype(np.float64) for row in rows)
        slope = factor / np.sqrt(spread + eps)
        pair = [value.astype(np.float32).reshape(-1, *[1] * (x.ndim - 2)) for value in (slope, term - middle * slope)]
        function = _scaled_relu if relu else _scaled
        arrays = (x, *(c.device.array(value) for value in pair))
        return in_memory_order(mapped, "batch_norm", function, *arrays, dtype=kind, computed=FP32, stream=c.stream)
    weight, shift = c.array(scale), c.array(bias)
    if not training:
        result = nn.batch_norm(x, c.array(mean), c.array(var), weight, shift, eps, stream=c.stream)
        result = nn.relu(result, stream=c.stream) if relu else result
        return result if kind == x.dtype else nn.cast(result, kind, stream=c.stream)
    found = nn.batch_norm_training(x, weight, shift, eps, stream=c.stream)
    keep = node.attributes.get("momentum", 0.9)
    running = [
        nn.lerp(c.array(old), new, 1 - keep, stream=c.stream) for old, new in ((mean, found.mean), (var, found.var))
    ]
    return found.y, *running


def _scaled(x: Any, slope: Any, term: Any) -> Any:
    return x * slope + term


def _scaled_relu(x: Any, slope: Any, term: Any) -> Any:
    return tile.maximum(x * slope + term, 0.0)


@operator("InstanceNormalization")
def instance_norm(c: Compilation, node: Node, x: Buffer, scale: Value, bias: Value) -> Buffer:
    x = dense(c, x)
    return nn.instance_norm(x, c.array(scale), c.array(bias), node.attributes.get("epsilon", 1e-5), stream=c.stream)


@operator("GroupNormalization")
def group_norm(c: Compilation, node: Node, x: Buffer, scale: Value, bias: Value) -> Buffer:
    if node.version < 21:
        raise UnsupportedOperator(f"{node}: of opset {node.version}, with scales for groups; it is of opset 21 on")
    groups, eps = node.attributes["num_groups"], node.attributes.get("epsilon", 1e-5)
    return nn.group_norm(dense(c, x), groups, c.array(scale), c.array(bias), eps, stream=c.stream)


@operator("LayerNormalization")
def layer_norm(c: Compilation, node: Node, x: Buffer, scale: Value, bias: Value | None = None) -> Any:
    first, eps = node.attributes.get("axis", -1) % x.ndim, node.attributes.get("epsilon", 1e-5)
    axes = tuple(range(first, x.ndim))
    shift = None if bias is None else c.array(bias)
    y = nn.layer_norm(x, c.array(scale), shift, eps, axes=len(axes), stream=c.stream)
    if len(node.outputs) == 1:
        return y
    return y, *nn.moments(x, axes, eps, stream=c.stream)


@operator("RMSNormalization")
def rms_norm(c: Compilation, node: Node, x: Buffer, scale: Value) -> Buffer:
    first, eps = node.attributes.get("axis", -1) % x.ndim, node.attributes.get("epsilon", 1e-5)
    return nn.rms_norm(x, c.array(scale), eps, axes=x.ndim - first, stream=c.stream)


@operator("LpNormalization")
def lp_norm(c: Compilation, node: Node, x: Buffer) -> Buffer:
    axis, order = node.attributes.get("axis", -1), node.attributes.get("p", 2)
    if order == 2:
        size = nn.norm(x, axis, True, stream=c.stream)
    else:
        size = nn.sum(nn.abs(x, stream=c.stream), axis, True, stream=c.stream)
    return nn.div(x, size, stream=c.stream)


@operator("MeanVarianceNormalization")
def mean_variance(c: Compilation, node: Node, x: Buffer) -> Buffer:
    axes = tuple(node.attributes.get("axes", [0, 2, 3]))
    mean = nn.mean(x, axes, True, stream=c.stream)
    deviation = nn.std(x, axes, True, correction=0, stream=c.stream)
    return nn.div(nn.sub(x, mean, stream=c.stream), nn.add(deviation, 1e-9, stream=c.stream), stream=c.stream)


@dataclass(frozen=True)
class LocalResponse:
    """x · (bias + scale · sum of squares)^-beta, a function of tiles: x, then what it sees, x among it."""

    scale: float
    beta: float
    bias: float

    def __call__(self, x: Any, *seen: Any) -> Any:
        total = seen[0] * seen[0]
        for value in seen[1:]:
            total = total + value * value
        return x * tile.exp2(tile.log2(total * self.scale + self.bias) * -self.beta)


@operator("LRN")
def local_response(c: Compilation, node: Node, x: Buffer) -> Buffer:
    """One launch on channels that lie side by side, padded with zeros."""
    size = node.attributes["size"]
    alpha, beta, bias = (
        node.attributes.get(name, default) for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    view, channels = turned(x), x.shape[1]
    padded = nn.pad(view, [((size - 1) // 2, size // 2)], stream=c.stream)
    seen = [padded[..., shift : shift + channels] for shift in range(size)]
    function = LocalResponse(alpha / size, beta, bias)
    kind = node.attributes.get(RESULT, FP32)
    result = mapped("lrn", function, view, *seen, dtype=kind, computed=FP32, stream=c.stream)
    return channels_first(result)
