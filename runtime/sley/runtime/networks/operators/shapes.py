"""Operators that move elements and change shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.errors import ShapeMismatch
from sley.runtime.networks.compilation import Compilation, Value, stored
from sley.runtime.networks.graph import Array, Node
from sley.runtime.networks.operators.order import dense, in_memory_order, memory_order, reshaped, restored
from sley.runtime.networks.passes.narrow import RESULT
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.networks.types import element_type
from sley.runtime.nn import operators as nn


@operator("Reshape")
def reshape(c: Compilation, node: Node, x: Buffer, shape: Value) -> Buffer:
    sides = [int(side) for side in c.known(node, shape, "the shape").ravel()]
    if not node.attributes.get("allowzero", 0):
        sides = [x.shape[place] if side == 0 else side for place, side in enumerate(sides)]
    if -1 in sides:
        rest = -math.prod(sides)
        sides[sides.index(-1)] = x.size // rest if rest else 0
    return reshaped(c, x, tuple(sides))


@operator("Flatten")
def flatten(c: Compilation, node: Node, x: Buffer) -> Buffer:
    axis = node.attributes.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return reshaped(c, x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@operator("Squeeze")
def squeeze(c: Compilation, node: Node, x: Buffer, axes: Value | None = None) -> Buffer:
    chosen = [place for place, side in enumerate(x.shape) if side == 1]
    if axes is not None:
        chosen = [int(axis) % x.ndim for axis in c.known(node, axes, "axes").ravel()]
    return x[tuple(0 if place in chosen else slice(None) for place in range(x.ndim))] if chosen else x


@operator("Unsqueeze")
def unsqueeze(c: Compilation, node: Node, x: Buffer, axes: Value) -> Buffer:
    given = c.known(node, axes, "axes").ravel()
    rank = x.ndim + len(given)
    chosen = {int(axis) % rank for axis in given}
    return x[tuple(None if place in chosen else slice(None) for place in range(rank))]


@operator("Transpose")
def transpose(c: Compilation, node: Node, x: Buffer) -> Buffer:
    return x.transpose(*node.attributes.get("perm", range(x.ndim)[::-1])) if x.ndim else x


@operator("Concat")
def concat(c: Compilation, node: Node, *values: Value) -> Buffer:
    arrays, kind = [c.array(value) for value in values], node.attributes.get(RESULT)
    if kind is not None and any(array.dtype != kind for array in arrays):
        arrays = [in_memory_order(nn.cast, array, kind, stream=c.stream) for array in arrays]
    axis, order = node.attributes["axis"] % arrays[0].ndim, memory_order(max(arrays, key=lambda array: array.size))
    views = [array.transpose(*order) for array in arrays]
    return restored(nn.concat(views, order.index(axis), stream=c.stream), order)


@operator("Split")
def split(c: Compilation, node: Node, x: Buffer, sizes: Value | None = None) -> Any:
    """Views, perhaps of no elements."""
    axis = node.attributes.get("axis", 0) % x.ndim
    whole = x.shape[axis]
    if sizes is not None:
        counts = [int(size) for size in c.known(node, sizes, "sizes")]
    else:
        count = node.attributes.get("num_outputs", len(node.outputs))
        each = -(-whole // count)
        counts = [min(each, whole - each * number) for number in range(count)]
    if sum(counts) != whole or min(counts) < 0:
        raise ShapeMismatch(f"parts of {counts} elements of {whole}; they must add up to it")
    ends = np.cumsum(counts).tolist()
    front = [slice(None)] * axis
    return tuple(x[(*front, slice(end - size, end))] for end, size in zip(ends, counts, strict=True))


@operator("Slice")
def cut(
    c: Compilation,
    node: Node,
    x: Buffer,
    starts: Value,
    ends: Value,
    axes: Value | None = None,
    steps: Value | None = None,
) -> Buffer:
    first, last = (c.known(node, value, "a bound").ravel().tolist() for value in (starts, ends))
    places = list(range(len(first))) if axes is None else c.known(node, axes, "axes").ravel().tolist()
    strides = [1] * len(first) if steps is None else c.known(node, steps, "steps").ravel().tolist()
    for place, start, end, step in zip(places, first, last, strides, strict=True):
        axis = place % x.ndim
        index: list[Any] = [slice(None)] * x.ndim
        if step > 0:
            index[axis] = slice(start, end, step)
            x = x[tuple(index)]
            continue
        taken = range(x.shape[axis])[start : end if end >= -x.shape[axis] else None : step]
        parts = []
        for number in taken:
            index[axis] = slice(number, number + 1)
            parts.append(x[tuple(index)])
        if not parts:
            raise UnsupportedOperator(f"{node}: a part without elements")
        x = nn.concat(parts, axis, stream=c.stream)
    return x


@operator("Pad")
def pad(
    c: Compilation, node: Node, x: Buffer, pads: Value, value: Value | None = None, axes: Value | None = None
) -> Buffer:
    mode = node.attributes.get("mode", "constant")
    sides = [int(side) for side in c.known(node, pads, "pads").ravel()]
    places = list(range(x.ndim)) if axes is None else [int(a) % x.ndim for a in c.known(node, axes, "axes").ravel()]
    pairs = [(0, 0)] * x.ndim
    for number, place in enumerate(places):
        pairs[place] = sides[number], sides[number + len(places)]
    for place, (before, behind) in enumerate(pairs):  # a negative side takes elements away
        index: list[Any] = [slice(None)] * x.ndim
        index[place] = slice(max(-before, 0), x.shape[place] - max(-behind, 0))
        x = x[tuple(index)]
    pairs = [(max(before, 0), max(behind, 0)) for before, behind in pairs]
    if mode == "constant":
        fill = 0 if value is None else c.known(node, value, "the value").item()
        return nn.pad(x, pairs, fill, stream=c.stream)
    for place, (before, behind) in enumerate(pairs):
        if before or behind:
            x = _extended(c, node, x, place, before, behind, mode)
    return x


def _extended(c: Compilation, node: Node, x: Buffer, place: int, before: int, behind: int, mode: str) -> Buffer:
    """An axis that goes on with its own elements."""
    size = x.shape[place]
    if mode not in ("edge", "reflect", "wrap"):
        raise UnsupportedOperator(f"{node}: mode {mode!r}; the device has constant, edge, reflect and wrap")
    how: Any = mode
    numbers = np.pad(np.arange(size), (before, behind), mode=how)
    parts = []
    for first, count, step in _runs(numbers.tolist()):
        low = first if step > 0 else first - count + 1
        part = x[(*[slice(None)] * place, slice(low, low + count))]
        parts.append(part if step > 0 else nn.flip(part, place, stream=c.stream))
    return nn.concat(parts, place, stream=c.stream)


def _runs(numbers: list[int]) -> list[tuple[int, int, int]]:
    """First number, how many, and step, 1 or -1, of runs of numbers that follow each other."""
    runs: list[tuple[int, int, int]] = []
    for number in numbers:
        first, count, step = runs[-1] if runs else (number, 0, 1)
        if runs and number == first + count * step:
            runs[-1] = first, count + 1, step
        elif runs and count == 1 and number == first - 1:
            runs[-1] = first, 2, -1
        else:
            runs.append((number, 1, 1))
    return runs


def _one(x: Buffer, place: int, number: int) -> Buffer:
    return x[(*[slice(None)] * place, slice(number, number + 1))]


@operator("CenterCropPad")
def center_crop_pad(c: Compilation, node: Node, x: Buffer, shape: Value) -> Buffer:
    sides = [int(side) for side in c.known(node, shape, "the shape").ravel()]
    axes = [axis % x.ndim for axis in node.attributes.get("axes", range(x.ndim))]
    pads = [(0, 0)] * x.ndim
    for axis, wanted in zip(axes, sides, strict=True):
        size = x.shape[axis]
        start, before = max((size - wanted) // 2, 0), max((wanted - size) // 2, 0)
        x = x[(*[slice(None)] * axis, slice(start, start + min(size, wanted)))]
        pads[axis] = before, max(wanted - size - before, 0)
    return nn.pad(x, pads, stream=c.stream) if any(map(sum, pads)) else x


@operator("Expand")
def expand(c: Compilation, node: Node, x: Buffer, shape: Value) -> Buffer:
    wanted = np.broadcast_shapes(x.shape, tuple(int(side) for side in c.known(node, shape, "the shape")))
    return x if wanted == x.shape else nn.broadcast_to(x, wanted, stream=c.stream)


@operator("Tile")
def tiled(c: Compilation, node: Node, x: Buffer, repeats: Value) -> Buffer:
    return nn.tiled(dense(c, x), [int(count) for count in c.known(node, repeats, "repeats")], stream=c.stream)


@operator("OneHot")
def one_hot(c: Compilation, node: Node, numbers: Buffer, depth: Value, values: Value) -> Buffer:
    count, axis = int(c.known(node, depth, "the depth").item()), node.attributes.get("axis", -1)
    off, on = c.known(node, values, "values").tolist()
    index = numbers if numbers.dtype == np.int32 else nn.cast(numbers, np.int32, stream=c.stream)
    rank = numbers.ndim + 1
    places = c.device.array(
        np.arange(count, dtype=np.int32).reshape([count if n == axis % rank else 1 for n in range(rank)])
    )
    view = index[tuple(None if n == axis % rank else slice(None) for n in range(rank))]
    hit = nn.logical_or(
        nn.eq(view, places, stream=c.stream),
        nn.eq(nn.add(view, count, stream=c.stream), places, stream=c.stream),
        stream=c.stream,
    )
    kind = stored(np.zeros(0, c.known(node, values, "values").dtype), "values").dtype
    result = nn.where(hit, float(on), float(off), stream=c.stream)
    return result if kind == np.float32 else nn.cast(result, kind, stream=c.stream)


@operator("Trilu")
def trilu(c: Compilation, node: Node, x: Buffer, k: Value | None = None) -> Buffer:
    if 0 in x.shape:
        return x
    diagonal = 0 if k is None else int(c.known(node, k, "k").item())
    function = nn.triu if node.attributes.get("upper", 1) else nn.tril
    return function(x, diagonal, stream=c.stream)


@operator("EyeLike")
def eye_like(c: Compilation, node: Node, x: Buffer) -> Array:
    kind = element_type(node.attributes["dtype"]) if "dtype" in node.attributes else x.dtype
    rows, columns = x.shape
    return np.eye(rows, columns, k=node.attributes.get("k", 0)).astype(kind)


@operator("DepthToSpace")
def depth_to_space(c: Compilation, node: Node, x: Buffer) -> Buffer:
    size, (images, depth, height, width) = node.attributes["blocksize"], x.shape
    channels = depth // (size * size)
    if node.attributes.get("mode", "DCR") == "DCR":
        view = reshaped(c, x, (images, size, size, channels, height, width)).transpose(0, 3, 4, 1, 5, 2)
    else:
        view = reshaped(c, x, (images, channels, size, size, height, width)).transpose(0, 1, 4, 2, 5, 3)
    return reshaped(c, view, (images, channels, height * size, width * size))


@operator("SpaceToDepth")
def space_to_depth(c: Compilation, node: Node, x: Buffer) -> Buffer:
    size, (images, channels, height, width) = node.attributes["blocksize"], x.shape
    view = reshaped(c, x, (images, channels, height // size, size, width // size, size)).transpose(0, 3, 5, 1, 2, 4)
    return reshaped(c, view, (images, channels * size * size, height // size, width // size))


@operator("ReverseSequence")
def reverse_sequence(c: Compilation, node: Node, x: Buffer, lengths: Value) -> Buffer:
    batch, time = node.attributes.get("batch_axis", 1), node.attributes.get("time_axis", 0)
    sizes = c.known(node, lengths, "lengths").tolist()
    rows = []
    for number, size in enumerate(sizes):
        row = _one(x, batch, number)
        order = [*reversed(range(size)), *range(size, x.shape[time])]
        rows.append(nn.concat([_one(row, time, place) for place in order], time, stream=c.stream))
    return nn.concat(rows, batch, stream=c.stream)
