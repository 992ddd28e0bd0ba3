"""Elements by numbers."""

from __future__ import annotations

import math

import numpy as np

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.shapes import dense, reshaped
from sley.runtime.networks.registry import UnsupportedOperator, operator
from sley.runtime.nn import operators as nn


def numbers_of(c: Compilation, numbers: Value, size: int) -> Buffer:
    """Numbers of elements of an axis of ``size``, counted from the first one on."""
    if isinstance(numbers, np.ndarray):
        return c.array(np.where(numbers < 0, numbers + size, numbers).astype(np.int32))
    index = numbers
    below = nn.lt(index, 0, stream=c.stream)
    return nn.where(below, nn.add(index, size, stream=c.stream), index, stream=c.stream)


@operator("Gather")
def gather(c: Compilation, node: Node, x: Value, numbers: Value) -> Buffer:
    array = dense(c, c.array(x))
    axis = node.attributes.get("axis", 0) % array.ndim
    index = dense(c, numbers_of(c, numbers, array.shape[axis]))
    flat = index.reshape(-1)
    result = nn.index_select(array, flat, axis, stream=c.stream)
    return result.reshape(*array.shape[:axis], *index.shape, *array.shape[axis + 1 :])


@operator("GatherElements")
def gather_elements(c: Compilation, node: Node, x: Value, numbers: Value) -> Buffer:
    array = c.array(x)
    axis = node.attributes.get("axis", 0) % array.ndim
    index = numbers_of(c, numbers, array.shape[axis])
    view = array[tuple(slice(None) if n == axis else slice(0, side) for n, side in enumerate(index.shape))]
    return nn.take_along(view, index, axis, stream=c.stream)


@operator("GatherND")
def gather_nd(c: Compilation, node: Node, x: Value, numbers: Value) -> Buffer:
    if node.attributes.get("batch_dims", 0):
        raise UnsupportedOperator(f"{node}: batch_dims")
    array, index = dense(c, c.array(x)), c.array(numbers)
    depth = index.shape[-1]
    flat = _flat_number(c, index, array.shape[:depth])
    table = array.reshape(math.prod(array.shape[:depth]), -1)
    result = nn.embedding(dense(c, flat), table, stream=c.stream)
    return result.reshape(*index.shape[:-1], *array.shape[depth:])


def _flat_number(c: Compilation, index: Buffer, sides: tuple[int, ...]) -> Buffer:
    """The number of an element, of its numbers along each axis."""
    total: Buffer | None = None
    for place, side in enumerate(sides):
        own = numbers_of(c, index[..., place], side)
        total = own if total is None else nn.add(nn.mul(total, side, stream=c.stream), own, stream=c.stream)
    assert total is not None
    return total


@operator("ScatterElements")
def scatter_elements(c: Compilation, node: Node, x: Value, numbers: Value, updates: Value) -> Buffer:
    array, source = c.array(x), c.array(updates)
    axis = node.attributes.get("axis", 0) % array.ndim
    index = numbers_of(c, numbers, array.shape[axis])
    if any(a != b for n, (a, b) in enumerate(zip(array.shape, index.shape, strict=True)) if n != axis):
        raise UnsupportedOperator(f"{node}: numbers of shape {index.shape} for an array of {array.shape}")
    kind = node.attributes.get("reduction", "none")
    if kind == "none":
        return nn.scatter(array, index, source, axis, stream=c.stream)
    if kind == "add":
        return nn.scatter_add(array, index, source, axis, stream=c.stream)
    raise UnsupportedOperator(f"{node}: reduction {kind!r}; the device has none and add")


@operator("ScatterND")
def scatter_nd(c: Compilation, node: Node, x: Value, numbers: Value, updates: Value) -> Buffer:
    array, index, source = dense(c, c.array(x)), c.array(numbers), dense(c, c.array(updates))
    depth = index.shape[-1]
    flat = reshaped(c, _flat_number(c, index, array.shape[:depth]), (-1, 1))
    table = array.reshape(math.prod(array.shape[:depth]), -1)
    rows = source.reshape(-1, table.shape[1])
    every = nn.broadcast_to(flat, rows.shape, stream=c.stream)
    kind = node.attributes.get("reduction", "none")
    if kind not in ("none", "add"):
        raise UnsupportedOperator(f"{node}: reduction {kind!r}; the device has none and add")
    function = nn.scatter if kind == "none" else nn.scatter_add
    return function(table, every, rows, 0, stream=c.stream).reshape(*array.shape)
