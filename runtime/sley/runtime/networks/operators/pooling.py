"""Pooling of images, and what puts windows back into images."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from sley.runtime.device.buffer import BF16, Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.images import channels_first, channels_last, sides_of
from sley.runtime.networks.operators.order import dense
from sley.runtime.networks.registry import operator
from sley.runtime.nn import operators as nn
from sley.runtime.nn.mapping import INT8


@operator("MaxPool", "AveragePool", "LpPool")
def pool(c: Compilation, node: Node, x: Buffer) -> Any:
    window = tuple(node.attributes["kernel_shape"])
    steps, spreads = (tuple(node.attributes.get(name, [1] * len(window))) for name in ("strides", "dilations"))
    pads = sides_of(node, x.shape[2:], window)
    own = list(pads)
    if node.attributes.get("ceil_mode", 0):
        for place, (size, taps, step, spread) in enumerate(zip(x.shape[2:], window, steps, spreads, strict=True)):
            before, behind = pads[place]
            wide = (taps - 1) * spread + 1
            out = -(-(size + before + behind - wide) // step) + 1
            if (out - 1) * step >= size + before:
                out -= 1
            pads[place] = before, max((out - 1) * step + wide - size - before, behind)
    view = channels_last(c, x)
    if node.operator == "MaxPool":
        if x.dtype in (BF16, INT8) and len(window) == 2 and len(node.outputs) == 1 and _plain(window, spreads, pads):
            padding: Any = tuple(pads)
            return channels_first(nn.max_pool2d(view, window, stride=steps, padding=padding, stream=c.stream))
        lowest = -float("inf") if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
        padded = nn.pad(view, [*pads, (0, 0)], lowest, stream=c.stream) if any(map(sum, pads)) else view
        largest = nn.max_pool(padded, window, stride=steps, dilation=spreads, stream=c.stream)
        if len(node.outputs) == 1:
            return channels_first(largest)
        numbers = _numbers(x.shape, pads, bool(node.attributes.get("storage_order", 0)))
        found = nn.max_pool_places(
            padded, largest, c.array(numbers), window, stride=steps, dilation=spreads, stream=c.stream
        )
        starts = np.arange(x.shape[0] * x.shape[1], dtype=np.int32) * math.prod(x.shape[2:])
        planes = c.array(starts.reshape(x.shape[0], *(1 for _ in window), x.shape[1]))
        return channels_first(largest), channels_first(nn.add(found, planes, stream=c.stream))
    padded = nn.pad(view, [*pads, (0, 0)], stream=c.stream) if any(map(sum, pads)) else view
    if node.operator == "LpPool":
        power = node.attributes.get("p", 2)
        pooled = nn.lp_pool(padded, power, window, stride=steps, dilation=spreads, stream=c.stream)
        return channels_first(pooled)
    total = nn.sum_pool(padded, window, stride=steps, dilation=spreads, stream=c.stream)
    counts = _counts(
        x.shape[2:], window, steps, spreads, (pads, own), bool(node.attributes.get("count_include_pad", 0))
    )
    return channels_first(nn.mul(total, c.device.array(counts.astype(np.float32)[..., None]), stream=c.stream))


def _plain(window: tuple[int, ...], spreads: tuple[int, ...], pads: list[tuple[int, int]]) -> bool:
    """Whether the kernel of pooling has it: each window sees an element."""
    inside = all(max(pair) < taps for taps, pair in zip(window, pads, strict=True))
    return inside and all(spread == 1 for spread in spreads)


def _numbers(shape: tuple[int, ...], pads: list[tuple[int, int]], columns_first: bool) -> np.ndarray:
    """Numbers of the elements of one plane, padded, with an axis of images and one of channels."""
    sides = shape[2:]
    numbers = np.arange(math.prod(sides), dtype=np.int32)
    plane = numbers.reshape(sides[::-1]).T if columns_first else numbers.reshape(sides)
    return np.pad(plane, pads)[None, ..., None]


def _counts(
    sizes: tuple[int, ...],
    window: tuple[int, ...],
    steps: tuple[int, ...],
    spreads: tuple[int, ...],
    pads: tuple[list[tuple[int, int]], list[tuple[int, int]]],
    padded: bool,
) -> np.ndarray:
    """1 / taps of each window that count: those in the image, or in its own padding, too."""
    result = np.ones((1,) * len(sizes))
    wide, own = pads
    for place, (size, taps, step, spread) in enumerate(zip(sizes, window, steps, spreads, strict=True)):
        before, behind = wide[place]
        first, last = (-own[place][0], size + own[place][1]) if padded else (0, size)
        out = (size + before + behind - (taps - 1) * spread - 1) // step + 1
        places = np.arange(out)[:, None] * step - before + np.arange(taps) * spread
        seen = ((places >= first) & (places < last)).sum(1)
        result = result * seen.reshape([-1 if axis == place else 1 for axis in range(len(sizes))])
    return 1 / np.maximum(result, 1)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(c: Compilation, node: Node, x: Buffer) -> Buffer:
    axes = tuple(range(2, x.ndim))
    if node.operator == "GlobalLpPool":
        return nn.norm(x, axes, True, stream=c.stream)
    return (nn.mean if node.operator == "GlobalAveragePool" else nn.amax)(x, axes, True, stream=c.stream)


@operator("MaxUnpool")
def max_unpool(c: Compilation, node: Node, x: Value, numbers: Value, shape: Value | None = None) -> Buffer:
    """Elements at the places that their numbers say in images of the size that they were pooled from, zeros between.
    Where ``output_shape`` is larger than that, the rest is zeros behind."""
    array, index = dense(c, c.array(x)), dense(c, c.array(numbers))
    window = node.attributes["kernel_shape"]
    count = len(window)
    steps, pads = node.attributes.get("strides", [1] * count), node.attributes.get("pads", [0] * (2 * count))
    every = zip(array.shape[2:], window, steps, pads[:count], pads[count:], strict=True)
    sides = [(size - 1) * step + taps - before - behind for size, taps, step, before, behind in every]
    own = (*array.shape[:2], *sides)
    zeros = nn.full(c.device, (math.prod(own),), 0, array.dtype, stream=c.stream)
    result = nn.scatter(zeros, index.reshape(-1), array.reshape(-1), stream=c.stream).reshape(*own)
    if shape is None:
        return result
    wanted = [int(side) for side in c.known(node, shape, "the shape of the result").ravel()]
    ends = [(0, side - old) for side, old in zip(wanted, own, strict=True)]
    return nn.pad(result, ends, stream=c.stream) if any(map(sum, ends)) else result


@operator("Col2Im")
def col2im(c: Compilation, node: Node, x: Value, shape: Value, block: Value) -> Buffer:
    """Windows, one in each column, added up in an image, tap after tap."""
    array = dense(c, c.array(x))
    sides, taps = ([int(side) for side in c.known(node, value, "a size").ravel()] for value in (shape, block))
    count = len(sides)
    steps, spreads = (node.attributes.get(name, [1] * count) for name in ("strides", "dilations"))
    pads = node.attributes.get("pads", [0] * (2 * count))
    wide = [side + pads[n] + pads[n + count] for n, side in enumerate(sides)]
    outs = [(wide[n] - (taps[n] - 1) * spreads[n] - 1) // steps[n] + 1 for n in range(count)]
    channels = array.shape[1] // math.prod(taps)
    parts = array.reshape(array.shape[0], channels, math.prod(taps), *outs)
    total = nn.full(c.device, (array.shape[0], channels, *wide), 0, array.dtype, stream=c.stream)
    for number, spot in enumerate(product(*map(range, taps))):
        firsts = [spot[n] * spreads[n] for n in range(count)]
        seen = [slice(first, first + (outs[n] - 1) * steps[n] + 1, steps[n]) for n, first in enumerate(firsts)]
        target = total[(slice(None), slice(None), *seen)]
        nn.add(target, parts[:, :, number], out=target, stream=c.stream)
    return total[(slice(None), slice(None), *(slice(pads[n], pads[n] + side) for n, side in enumerate(sides)))]
