"""Arrays of an element-wise operator, as few axes as they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sley.runtime.device.buffer import Buffer
from sley.runtime.errors import ShapeMismatch

AXES = 4
"""Of the arrays that kernels take: two around rows and columns."""


def broadcast_shape(operator: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that these have together, as in numpy. Raises ``ShapeMismatch``."""
    found: list[int] = []
    for number in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {shape[-number] for shape in shapes if len(shape) >= number} - {1}
        if len(sizes) > 1:
            raise ShapeMismatch(
                f"{operator} of shapes {' and '.join(map(str, shapes))}: axes, counted from the last one, are equal or "
                "1"
            )
        found.insert(0, sizes.pop() if sizes else 1)
    return tuple(found)


@dataclass(frozen=True)
class Axis:
    """An axis of all arrays: its size, and bytes from element to element in each, 0 where the array has one element."""

    size: int
    strides: tuple[int, ...]

    def inside(self, inner: Axis) -> bool:
        """Whether this axis and the one inside of it are one, in each array."""
        pairs = zip(self.strides, inner.strides, strict=True)
        return all(outer == step * inner.size for outer, step in pairs)


def axes_of(arrays: Sequence[Buffer], shape: tuple[int, ...]) -> list[Axis]:
    """The fewest axes of arrays that are broadcast to ``shape``. The last array's order in memory is theirs."""
    found = []
    for number in range(1, len(shape) + 1):
        strides = [
            array.strides[-number] if len(array.shape) >= number and array.shape[-number] > 1 else 0 for array in arrays
        ]
        if shape[-number] > 1:
            found.append(Axis(shape[-number], tuple(strides)))
    found.sort(key=lambda axis: -axis.strides[-1])
    joined: list[Axis] = []
    for axis in found:
        if joined and joined[-1].inside(axis):
            outer = joined.pop()
            axis = Axis(outer.size * axis.size, axis.strides)
        joined.append(axis)
    return joined or [Axis(1, (0,) * len(arrays))]


def viewed(array: Buffer, number: int, axes: Sequence[Axis], offset: int = 0) -> Buffer:
    """An array, from a byte offset on, as these axes; one that it is broadcast along has size 1."""
    shape = tuple(axis.size if axis.strides[number] else 1 for axis in axes)
    size = array.dtype.itemsize
    strides = [axis.strides[number] for axis in axes]
    for place in reversed(range(len(axes))):  # a stride for axes of one element, too: what is inside of it
        if shape[place] == 1:
            inner = zip(shape[place + 1 :], strides[place + 1 :], strict=True)
            strides[place] = max((side * stride for side, stride in inner), default=size)
    return array.strided(shape, tuple(strides), offset)


def with_columns(arrays: Sequence[Buffer], axes: list[Axis]) -> list[Axis]:
    """Axes whose last one is contiguous in each array that has it: one of a single element if none is. Elements are
    then runs by themselves, some 10 cycles each.
    """
    sizes = [array.dtype.itemsize for array in arrays]
    if all(stride in (0, size) for stride, size in zip(axes[-1].strides, sizes, strict=True)):
        return axes
    return [*axes, Axis(1, (0,) * len(arrays))]


def pieces(axes: list[Axis], columns: int) -> list[tuple[tuple[int, ...], list[Axis]]]:
    """A single axis as rows of so many columns, and what is left: byte offsets in each array, and axes."""
    if len(axes) > 1 or axes[0].size <= columns or not all(axes[0].strides):
        return [((0,) * len(axes[0].strides), axes)]
    (axis,) = axes
    rows, rest = divmod(axis.size, columns)
    row = Axis(rows, tuple(stride * columns for stride in axis.strides))
    found = [((0,) * len(axis.strides), [row, Axis(columns, axis.strides)])]
    if rest:
        found.append((tuple(stride * rows * columns for stride in axis.strides), [Axis(rest, axis.strides)]))
    return found


def repeats(array: Buffer) -> bool:
    """Whether a view has elements more than once, along an axis with a stride of 0; a kernel takes such an axis of one
    operand for a broadcast one, of a single element."""
    return any(side > 1 and stride == 0 for side, stride in zip(array.shape, array.strides, strict=True))
