"""Reductions along axes, places and orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.registry import operator
from sley.runtime.nn import operators as nn

_REDUCTIONS: dict[str, Callable[..., Buffer]] = {
    "ReduceSum": nn.sum,
    "ReduceMean": nn.mean,
    "ReduceMax": nn.amax,
    "ReduceMin": nn.amin,
    "ReduceL2": nn.norm,
    "ReduceProd": nn.prod,
}
_BEFORE: dict[str, Callable[..., Buffer]] = {"ReduceL1": nn.abs, "ReduceSumSquare": nn.square}


@operator("ReduceL1", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", *_REDUCTIONS)
def reduce(c: Compilation, node: Node, x: Buffer, axes: Value | None = None) -> Buffer:
    given = node.attributes.get("axes")
    if axes is not None:
        given = c.known(node, axes, "axes").tolist()
    if not given:
        if node.attributes.get("noop_with_empty_axes", 0):
            return x
        given = list(range(x.ndim))
    chosen, keep, name = tuple(given), bool(node.attributes.get("keepdims", 1)), node.operator
    if not chosen:
        return x
    if 0 in x.shape:
        return _of_nothing(c, node, x, chosen, keep)
    if x.dtype == bool and name in ("ReduceMax", "ReduceMin"):
        return (nn.any if name == "ReduceMax" else nn.all)(x, chosen, keep, stream=c.stream)
    if name == "ReduceLogSumExp":
        return _logsumexp(c, x, chosen, keep)
    if name in _BEFORE:
        x = _BEFORE[name](x, stream=c.stream)
    result = _REDUCTIONS.get(name, nn.sum)(x, chosen, keep, stream=c.stream)
    return nn.log(result, stream=c.stream) if name == "ReduceLogSum" else result


_IDENTITY = {
    "ReduceLogSum": -np.inf,
    "ReduceLogSumExp": -np.inf,
    "ReduceMax": -np.inf,
    "ReduceMean": np.nan,
    "ReduceMin": np.inf,
    "ReduceProd": 1,
}
"""Of arrays without elements, where it is not 0."""


def _of_nothing(c: Compilation, node: Node, x: Buffer, axes: tuple[int, ...], keep: bool) -> Buffer:
    reduced = {axis % x.ndim for axis in axes}
    shape = tuple(1 if place in reduced else side for place, side in enumerate(x.shape) if keep or place not in reduced)
    if 0 in shape:
        return c.device.empty(shape, x.dtype)
    value = _IDENTITY.get(node.operator, 0)
    if x.dtype.kind == "i" and np.isinf(value):
        value = np.iinfo(x.dtype).max if value > 0 else np.iinfo(x.dtype).min
    return nn.full(c.device, shape, value, x.dtype, stream=c.stream)


def _logsumexp(c: Compilation, x: Buffer, axes: tuple[int, ...], keep: bool) -> Buffer:
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = nn.logsumexp(x, axis, keep, stream=c.stream)
    return x


@operator("ArgMax", "ArgMin")
def arg(c: Compilation, node: Node, x: Buffer) -> Buffer:
    function = nn.argmax if node.operator == "ArgMax" else nn.argmin
    axis, keep = node.attributes.get("axis", 0), bool(node.attributes.get("keepdims", 1))
    return function(x, axis, keep, last=bool(node.attributes.get("select_last_index", 0)), stream=c.stream)


@operator("TopK")
def topk(c: Compilation, node: Node, x: Buffer, k: Value) -> Any:
    count = int(c.known(node, k, "k").item())
    axis, largest = node.attributes.get("axis", -1), bool(node.attributes.get("largest", 1))
    return tuple(nn.topk(x, count, axis, largest, stream=c.stream))


@operator("CumSum")
def cumsum(c: Compilation, node: Node, x: Buffer, axis: Value) -> Buffer:
    place = int(c.known(node, axis, "the axis").item()) % x.ndim
    if node.attributes.get("reverse", 0):
        x = nn.flip(x, place, stream=c.stream)
    total = nn.cumsum(x, place, stream=c.stream)
    if node.attributes.get("exclusive", 0):
        total = nn.sub(total, x, stream=c.stream)
    if node.attributes.get("reverse", 0):
        total = nn.flip(total, place, stream=c.stream)
    return total if total.dtype == x.dtype else nn.cast(total, x.dtype, stream=c.stream)


@operator("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def loss(c: Compilation, node: Node, x: Buffer, target: Value, weight: Value | None = None) -> Any:
    ignored, kind = node.attributes.get("ignore_index", -100), node.attributes.get("reduction", "mean")
    labels, shares = c.array(target), None if weight is None else c.array(weight)
    more: Any = {"weight": shares, "ignore_index": ignored, "reduction": kind, "stream": c.stream}
    if node.operator == "NegativeLogLikelihoodLoss":
        return nn.nll_loss(x, labels, 1, **more)
    value = nn.cross_entropy(x, labels, 1, **more)
    return (value, nn.log_softmax(x, 1, stream=c.stream)) if len(node.outputs) > 1 else value


def axis_numbers(c: Compilation, count: int, axis: int, ndim: int) -> Buffer:
    """0, 1, 2, … along an axis, int32."""
    shape = [count if number == axis else 1 for number in range(ndim)]
    return c.device.array(np.arange(count, dtype=np.int32).reshape(shape))
