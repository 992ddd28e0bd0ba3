"""Norms and softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn


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
    eps, weight, shift = node.attributes.get("epsilon", 1e-5), c.array(scale), c.array(bias)
    if not node.attributes.get("training_mode", 0):
        return nn.batch_norm(x, c.array(mean), c.array(var), weight, shift, eps, stream=c.stream)
    found = nn.batch_norm_training(x, weight, shift, eps, stream=c.stream)
    keep = node.attributes.get("momentum", 0.9)
    running = [
        nn.lerp(c.array(old), new, 1 - keep, stream=c.stream) for old, new in ((mean, found.mean), (var, found.var))
    ]
    return found.y, *running


@operator("InstanceNormalization")
def instance_norm(c: Compilation, node: Node, x: Buffer, scale: Value, bias: Value) -> Buffer:
    return nn.instance_norm(x, c.array(scale), c.array(bias), node.attributes.get("epsilon", 1e-5), stream=c.stream)


@operator("GroupNormalization")
def group_norm(c: Compilation, node: Node, x: Buffer, scale: Value, bias: Value) -> Buffer:
    if node.version < 21:
        raise UnsupportedOperator(f"{node}: of opset {node.version}, with scales for groups; it is of opset 21 on")
    groups, eps = node.attributes["num_groups"], node.attributes.get("epsilon", 1e-5)
    return nn.group_norm(x, groups, c.array(scale), c.array(bias), eps, stream=c.stream)


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


@operator("LRN")
def local_response(c: Compilation, node: Node, x: Buffer) -> Buffer:
    size = node.attributes["size"]
    alpha, beta, bias = (
        node.attributes.get(name, default) for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    squares = nn.square(x, stream=c.stream)
    sides = [((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)]
    padded = nn.pad(squares, sides, stream=c.stream)
    total = padded[:, : x.shape[1]]
    for shift in range(1, size):
        total = nn.add(total, padded[:, shift : shift + x.shape[1]], stream=c.stream)
    base = nn.add(nn.mul(total, alpha / size, stream=c.stream), bias, stream=c.stream)
    return nn.mul(x, nn.pow(base, -beta, stream=c.stream), stream=c.stream)
