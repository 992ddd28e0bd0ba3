"""Random numbers: other ones at each run, the same at each run for an operator whose ``seed`` is given.

ONNX leaves the generator open; here it is that of ``nn.rand``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.order import dense
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.networks.types import element_type
from sley.runtime.nn import operators as nn
from sley.runtime.nn.mapping import FP32, mapped
from sley.runtime.tile import language as tile

KINDS = BF16, FP32
"""Types of random numbers."""


@operator("RandomUniform", "RandomUniformLike")
def uniform(c: Compilation, node: Node, like: Value | None = None) -> Buffer:
    low, high = node.attributes.get("low", 0.0), node.attributes.get("high", 1.0)
    return _moved(c, _drawn(c, node, nn.rand, like), high - low, low)


@operator("RandomNormal", "RandomNormalLike")
def normal(c: Compilation, node: Node, like: Value | None = None) -> Buffer:
    mean, scale = node.attributes.get("mean", 0.0), node.attributes.get("scale", 1.0)
    return _moved(c, _drawn(c, node, nn.randn, like), scale, mean)


@operator("Bernoulli")
def bernoulli(c: Compilation, node: Node, chance: Value) -> Buffer:
    x = c.array(chance)
    kind = element_type(node.attributes["dtype"]) if "dtype" in node.attributes else x.dtype
    hit = nn.lt(draws(c, node, x.shape), x, stream=c.stream)
    return hit if kind == np.bool_ else nn.cast(hit, np.dtype(np.int32) if kind == np.int64 else kind, stream=c.stream)


@operator("Multinomial")
def multinomial(c: Compilation, node: Node, logarithms: Value) -> Buffer:
    """The class whose logarithm plus a number of the Gumbel distribution is largest: [images, samples], int32."""
    x, count = c.array(logarithms), node.attributes.get("sample_size", 1)
    u = draws(c, node, (x.shape[0], count, x.shape[1]))
    race = mapped("gumbel", _gumbel, x[:, None], u, dtype=FP32, computed=FP32, stream=c.stream)
    return nn.argmax(race, -1, stream=c.stream)


@operator("Dropout")
def dropout(
    c: Compilation, node: Node, x: Value, ratio: Value | None = None, training: Value | None = None
) -> Buffer | tuple[Buffer, ...]:
    """With ``training_mode`` an element stays where a number is below 1 - ratio, as on the device of PyTorch."""
    array = c.array(x)
    share = 0.5 if ratio is None else float(c.known(node, ratio, "the ratio"))
    drops = training is not None and bool(c.known(node, training, "training_mode")) and share > 0
    if not drops:
        return (array, nn.full(c.device, array.shape, 1, bool, stream=c.stream)) if len(node.outputs) > 1 else array
    mask = nn.lt(draws(c, node, array.shape), 1 - share, stream=c.stream)
    scale = 1 / (1 - share) if share < 1 else 0.0
    y = mapped("dropout", _kept, array, mask, scale, dtype=array.dtype, computed=FP32, stream=c.stream)
    return (y, mask)[: max(len(node.outputs), 1)]


def draws(c: Compilation, node: Node, shape: tuple[int, ...]) -> Buffer:
    """float32 from 0 to below 1."""
    if 0 in shape:
        return c.device.empty(shape, FP32)
    return nn.rand(c.device, shape, _seed(c, node), stream=c.stream)


def _drawn(c: Compilation, node: Node, function: Callable[..., Buffer], like: Value | None) -> Buffer:
    shape = tuple(node.attributes["shape"]) if like is None else like.shape
    kind = FP32 if like is None else like.dtype
    kind = element_type(node.attributes["dtype"]) if "dtype" in node.attributes else kind
    if kind not in KINDS:
        raise UnsupportedOperator(f"{node}: random numbers of {kind}; the device has float32 and bfloat16")
    if 0 in shape:
        return c.device.empty(shape, kind)
    return function(c.device, shape, _seed(c, node), kind, stream=c.stream)


def _seed(c: Compilation, node: Node) -> int | Buffer:
    """Of a node with a seed the bits of that, a float."""
    if "seed" not in node.attributes:
        return c.seeds.take()
    return int.from_bytes(struct.pack("<f", node.attributes["seed"]), "little")


def _moved(c: Compilation, x: Buffer, scale: float, shift: float) -> Buffer:
    if (scale, shift) == (1, 0) or not x.size:
        return x
    return mapped("moved", _line, dense(c, x), scale, shift, dtype=x.dtype, computed=FP32, stream=c.stream)


def _line(x: Any, scale: Any, shift: Any) -> Any:
    return x * scale + shift


def _gumbel(x: Any, u: Any) -> Any:
    return x - tile.log(-tile.log(u))


def _kept(x: Any, mask: Any, scale: Any) -> Any:
    return tile.where(mask != 0, x * scale, 0.0)
