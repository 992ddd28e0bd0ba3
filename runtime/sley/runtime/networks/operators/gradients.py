"""Gradients that ONNX has no operators for, of the domain ``sley``: what PyTorch's graphs of training are exported to.

Arguments and results are laid out as PyTorch has them: channels second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.images import channels_first, channels_last, precision_of, windows_of
from sley.runtime.networks.operators.order import dense
from sley.runtime.networks.operators.patches import conv_image_gradient, conv_weight_gradient
from sley.runtime.networks.registry import operator
from sley.runtime.nn import operators as nn


@operator("ConvBackward")
def conv_backward(c: Compilation, node: Node, grad: Value, x: Value, w: Value) -> Any:
    """Of images, of weights, and of the bias, those that ``mask`` wants; what it leaves out has no element."""
    images, weights, rows = channels_last(c, c.array(x)), c.array(w), channels_last(c, c.array(grad))
    more: tuple[Any, ...] = windows_of(node, weights), precision_of(c, node), c.stream
    none = c.device.empty((0,), weights.dtype)
    wanted = node.attributes["mask"]
    of_x = of_w = of_bias = none
    if wanted[0]:
        found = conv_image_gradient(rows, weights, images.shape, *more)
        of_x = channels_first(_like(c, found, images))
    if wanted[1]:
        of_w = _like(c, conv_weight_gradient(nn.copy(rows, stream=c.stream), images, weights.shape, *more), weights)
    if wanted[2]:
        of_bias = _like(c, nn.sum(rows, tuple(range(rows.ndim - 1)), stream=c.stream), weights)
    return of_x, of_w, of_bias


@operator("MaxPoolBackward")
def max_pool_backward(c: Compilation, node: Node, grad: Value, x: Value) -> Buffer:
    view, window = channels_last(c, c.array(x)), tuple(node.attributes["kernel_shape"])
    more: dict[str, Any] = {
        "stride": tuple(node.attributes["strides"]),
        "padding": tuple(node.attributes["pads"]),
        "dilation": tuple(node.attributes["dilations"]),
        "stream": c.stream,
    }
    largest = nn.max_pool(view, window, **more)
    return channels_first(nn.max_pool_backward(channels_last(c, c.array(grad)), view, largest, window, **more))


@operator("AveragePoolBackward")
def avg_pool_backward(c: Compilation, node: Node, grad: Value, x: Value) -> Buffer:
    found = nn.avg_pool_backward(
        channels_last(c, c.array(grad)),
        channels_last(c, c.array(x)),
        tuple(node.attributes["kernel_shape"]),
        stride=tuple(node.attributes["strides"]),
        padding=tuple(node.attributes["pads"]),
        count_include_pad=bool(node.attributes["count_include_pad"]),
        stream=c.stream,
    )
    return channels_first(found)


@operator("SoftmaxBackward", "LogSoftmaxBackward")
def softmax_backward(c: Compilation, node: Node, grad: Value, y: Value) -> Buffer:
    function = nn.softmax_backward if node.operator == "SoftmaxBackward" else nn.log_softmax_backward
    return function(c.array(grad), c.array(y), node.attributes["axis"], stream=c.stream)


@operator("BatchNormalizationTraining")
def batch_norm_training(
    c: Compilation, node: Node, x: Value, scale: Value | None, bias: Value | None, mean: Value, var: Value
) -> Any:
    """y, mean, reciprocal deviation, and both running moments, that of the variance without bias."""
    images = c.array(x)
    weight, shift = (None if row is None else c.array(row) for row in (scale, bias))
    found = nn.batch_norm_training(images, weight, shift, node.attributes["epsilon"], stream=c.stream)
    count, share = images.size // images.shape[1], node.attributes["momentum"]
    spread = nn.mul(found.var, count / max(count - 1, 1), stream=c.stream)
    running = [nn.lerp(c.array(old), new, share, stream=c.stream) for old, new in ((mean, found.mean), (var, spread))]
    return found.y, found.mean, found.rstd, *running


@operator("BatchNormalizationBackward")
def batch_norm_backward(
    c: Compilation, node: Node, grad: Value, x: Value, mean: Value, rstd: Value, scale: Value | None = None
) -> Any:
    images, rows, center, inverse = (c.array(value) for value in (grad, x, mean, rstd))
    weight, training = None if scale is None else c.array(scale), bool(node.attributes["training"])
    found = nn.batch_norm_backward(images, rows, center, inverse, weight, training=training, stream=c.stream)
    return found.x, found.weight, found.bias


@operator("EmbeddingBackward")
def embedding_backward(c: Compilation, node: Node, grad: Value, numbers: Value) -> Buffer:
    rows, places = (dense(c, c.array(value)) for value in (grad, numbers))
    return nn.embedding_backward(rows, places, node.attributes["rows"], stream=c.stream)


def _like(c: Compilation, value: Buffer, other: Buffer) -> Buffer:
    return value if value.dtype == other.dtype else nn.cast(value, np.dtype(other.dtype), stream=c.stream)
