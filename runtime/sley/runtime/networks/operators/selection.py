"""Elements by numbers."""

from __future__ import annotations

import math

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation, Value
from sley.runtime.networks.graph import Node
from sley.runtime.networks.operators.order import dense, reshaped
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
    """A view, if one number is known."""
    if isinstance(numbers, np.ndarray) and numbers.ndim == 0 and isinstance(x, Buffer):
        place, number = node.attributes.get("axis", 0) % x.ndim, int(numbers)
        size = x.shape[place]
        if not -size <= number < size:
            raise BadRequest(f"{node} takes element {number} of {size}")
        return x[(*[slice(None)] * place, number % size)]
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
    array, index = dense(c, c.array(x)), c.array(numbers)
    batch, depth = node.attributes.get("batch_dims", 0), index.shape[-1]
    sides = array.shape[batch : batch + depth]
    flat, batches = _flat_number(c, index, sides), math.prod(array.shape[:batch])
    if batches > 1:
        shape = (*array.shape[:batch], *(1 for _ in index.shape[batch:-1]))
        starts = np.arange(batches, dtype=np.int32).reshape(shape) * math.prod(sides)
        flat = nn.add(flat, c.array(starts), stream=c.stream)
    table = array.reshape(batches * math.prod(sides), -1)
    result = nn.embedding(dense(c, flat), table, stream=c.stream)
    return result.reshape(*index.shape[:-1], *array.shape[batch + depth :])


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
    inside = tuple(slice(None) if n == axis else slice(0, side) for n, side in enumerate(index.shape))
    result = _scattered(c, node, array[inside], index, source, axis)
    if result.shape == array.shape:
        return result
    whole = nn.copy(array, stream=c.stream)
    nn.copy(result, out=whole[inside], stream=c.stream)
    return whole


def _scattered(c: Compilation, node: Node, x: Buffer, numbers: Buffer, source: Buffer, axis: int) -> Buffer:
    kind = node.attributes.get("reduction", "none")
    if kind in ("none", "add"):
        return (nn.scatter if kind == "none" else nn.scatter_add)(x, numbers, source, axis, stream=c.stream)
    return nn.scatter_reduce(
        x, numbers, source, axis, {"mul": "prod", "max": "amax", "min": "amin"}[kind], stream=c.stream
    )


@operator("ScatterND")
def scatter_nd(c: Compilation, node: Node, x: Value, numbers: Value, updates: Value) -> Buffer:
    array, index, source = dense(c, c.array(x)), c.array(numbers), dense(c, c.array(updates))
    depth = index.shape[-1]
    flat = reshaped(c, _flat_number(c, index, array.shape[:depth]), (-1, 1))
    table = array.reshape(math.prod(array.shape[:depth]), -1)
    rows = source.reshape(-1, table.shape[1])
    every = nn.broadcast_to(flat, rows.shape, stream=c.stream)
    return _scattered(c, node, table, every, rows, 0).reshape(*array.shape)


@operator("TensorScatter")
def tensor_scatter(c: Compilation, node: Node, cache: Value, update: Value, starts: Value | None = None) -> Buffer:
    """A part of a cache for each of a batch, from the place on that ``starts`` says."""
    array, source = c.array(cache), c.array(update)
    axis = node.attributes.get("axis", -2) % array.ndim
    size, count = array.shape[axis], source.shape[axis]
    shape = [count if number == axis else 1 for number in range(array.ndim)]
    places = c.array(np.arange(count, dtype=np.int32).reshape(shape))
    if starts is not None:
        first = c.array(starts)
        places = nn.add(first.reshape(-1, *(1 for _ in array.shape[1:])), places, stream=c.stream)
    if node.attributes.get("mode", "linear") == "circular":
        wrapped = nn.sub(places, size, stream=c.stream)
        places = nn.where(nn.lt(places, size, stream=c.stream), places, wrapped, stream=c.stream)
    every = nn.broadcast_to(places, source.shape, stream=c.stream)
    return nn.scatter(array, every, source, axis, stream=c.stream)


@operator("Compress")
def compress(c: Compilation, node: Node, x: Value, condition: Value) -> Buffer:
    array, axis = dense(c, c.array(x)), node.attributes.get("axis")
    if axis is None:
        array, axis = array.reshape(-1), 0
    numbers = np.flatnonzero(c.known(node, condition, "the condition")).astype(np.int32)
    axis %= array.ndim
    if not numbers.size:
        return c.device.empty((*array.shape[:axis], 0, *array.shape[axis + 1 :]), array.dtype)
    return nn.index_select(array, c.array(numbers), axis, stream=c.stream)


@operator("NonZero", "Unique", "NonMaxSuppression")
def of_values(c: Compilation, node: Node, *values: Value | None) -> Buffer:
    raise UnsupportedOperator(
        f"{node}: the size of its result depends on values; sizes must be known when it is compiled"
    )


@operator("If", "Loop", "Scan")
def subgraph(c: Compilation, node: Node, *values: Value | None) -> Buffer:
    """One that the pass ``subgraphs`` could not replace."""
    raise UnsupportedOperator(f"{node}: {node.attributes['reason']}")
