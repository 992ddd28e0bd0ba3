"""The order of axes in memory: element-wise work on arrays as they lie there, so that no array is rearranged.

Images have their channels second in networks and last in memory. What computes element by element sees them with the
axes of the largest operand in the order of memory, and gives a result that lies like it. A new shape is a view where it
can be one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from sley.runtime.device.buffer import Buffer
from sley.runtime.networks.compilation import Compilation
from sley.runtime.nn import operators as nn

Made = TypeVar("Made", Buffer, tuple[Buffer, ...])


def memory_order(x: Buffer) -> tuple[int, ...]:
    """Axes of x, the one whose elements are furthest apart first; axes of one element stay at their places."""
    wide = [axis for axis in range(x.ndim) if x.shape[axis] > 1]
    sorted_axes = iter(sorted(wide, key=lambda axis: -x.strides[axis]))
    return tuple(next(sorted_axes) if axis in wide else axis for axis in range(x.ndim))


def restored(x: Buffer, order: Sequence[int]) -> Buffer:
    """A view with the axes of x, which are in this order, back in their own."""
    return x.transpose(*sorted(range(len(order)), key=lambda axis: order[axis])) if order else x


def in_memory_order(function: Callable[..., Made], *operands: Any, **more: Any) -> Made:
    """``function``, which is element-wise, of operands that are broadcast; its result, or each of a tuple of them, lies
    like the largest operand."""
    arrays = [operand for operand in operands if isinstance(operand, Buffer)]
    rank = max((array.ndim for array in arrays), default=0)
    leaders = [array for array in arrays if array.ndim == rank]
    order = memory_order(max(leaders, key=lambda array: array.size)) if leaders else ()
    if order == tuple(range(rank)):
        return function(*operands, **more)
    results = function(*(_turned(operand, order) for operand in operands), **more)
    return tuple(restored(x, order) for x in results) if isinstance(results, tuple) else restored(results, order)


def _turned(operand: Any, order: Sequence[int]) -> Any:
    if not isinstance(operand, Buffer):
        return operand
    wide = operand if operand.ndim == len(order) else operand[(*[None] * (len(order) - operand.ndim), ...)]
    return wide.transpose(*order)


def dense(c: Compilation, x: Buffer) -> Buffer:
    """x row-major, a copy if it is not."""
    return x if x.contiguous else nn.copy(x, out=c.device.empty(x.shape, x.dtype), stream=c.stream)


def reshaped(c: Compilation, x: Buffer, shape: tuple[int, ...]) -> Buffer:
    """x with another shape: a view where axes are split, and where those that are merged lie so; else a copy, in which
    groups of merged axes keep their order in memory."""
    if x.contiguous or x.size != math.prod(shape) or x.size == 0:
        return dense(c, x).reshape(*shape)
    groups = merged_axes(x.shape, shape)
    if not all(_is_one_axis(x, old) for old, _ in groups):
        order = sorted(groups, key=lambda group: -min(_strides(x, group[0]), default=0))
        axes = [axis for old, _ in order for axis in old]
        view = x.transpose(*axes)
        x = restored(nn.copy(view, out=c.device.empty(view.shape, view.dtype), stream=c.stream), axes)
    strides = [0] * len(shape)
    for old, new in groups:
        step = min(_strides(x, old), default=x.dtype.itemsize)
        for axis in reversed(new):
            strides[axis], step = step, step * shape[axis]
    return x.strided(shape, tuple(strides))


def merged_axes(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Axes of one shape, and those of another one with as many elements that go through the same elements: groups as
    small as they can be, in order."""
    groups: list[tuple[list[int], list[int]]] = []
    left: list[int] = []
    right: list[int] = []
    count = wanted = 1
    first, second = 0, 0
    while first < len(old) or second < len(new):
        if second == len(new) or (first < len(old) and (not left or (right and count < wanted))):
            left.append(first)
            count, first = count * old[first], first + 1
        else:
            right.append(second)
            wanted, second = wanted * new[second], second + 1
        if left and right and count == wanted:
            groups.append((left, right))
            left, right, count, wanted = [], [], 1, 1
    return [*groups, (left, right)] if left or right else groups


def _strides(x: Buffer, axes: Sequence[int]) -> list[int]:
    return [x.strides[axis] for axis in axes if x.shape[axis] > 1]


def _is_one_axis(x: Buffer, axes: Sequence[int]) -> bool:
    """Whether neighbouring axes lie in memory like one."""
    wide = [axis for axis in axes if x.shape[axis] > 1]
    return all(x.strides[a] == x.strides[b] * x.shape[b] for a, b in pairwise(wide))
