"""Where the elements of an array lie in device memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.driver import BadRequest
from sley.runtime.errors import BadIndex, ShapeMismatch


@dataclass(frozen=True)
class Layout:
    """Shape and strides of an array, as numpy's, from the device address of its first element on.

    The arithmetic is numpy's, on a numpy array that claims to be at the device address. No element of it is ever read,
    since there is none. Address 0, which numpy would take for none, is no array's.

    Attributes: ``strides`` in bytes, never negative; ``itemsize`` bytes of an element.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @classmethod
    def dense(cls, address: int, shape: tuple[int, ...], itemsize: int) -> Layout:
        """Row-major, one element behind the other."""
        return cls._of(np.asarray(_Elements(address, shape, None, itemsize)))

    @classmethod
    def _of(cls, array: NDArray[Any]) -> Layout:
        return cls(array.__array_interface__["data"][0], array.shape, array.strides, array.itemsize)

    @property
    def _array(self) -> NDArray[Any]:
        return np.asarray(_Elements(self.address, self.shape, self.strides, self.itemsize))

    @property
    def contiguous(self) -> bool:
        """Whether it is row-major with nothing between its elements."""
        return self._array.flags.c_contiguous

    @property
    def span(self) -> int:
        """Bytes from its first element to the end of its last one."""
        if 0 in self.shape:
            return 0
        return sum((side - 1) * stride for side, stride in zip(self.shape, self.strides, strict=True)) + self.itemsize

    def overlaps(self, other: Layout) -> bool:
        """Whether the two have a byte in common: exactly, not by their first and last ones alone."""
        return np.shares_memory(self._array, other._array)

    def part(self, key: Any) -> Layout:
        """What numpy's basic indexing selects: integers, slices that go forward, an Ellipsis, ``None``. Raises
        ``BadIndex``."""
        items = [_checked(item) for item in (key if isinstance(key, tuple) else (key,))]
        whole = [] if Ellipsis in items else [Ellipsis]  # without, numpy would look at a single element
        try:
            found = self._of(self._array[(*items, *whole)])
        except (IndexError, TypeError, ValueError) as error:
            raise BadIndex(f"[{_text(key)}] selects no part of shape {self.shape}: {error}") from None
        if any(stride < 0 for stride in found.strides):
            raise BadIndex(
                f"[{_text(key)}] goes backwards; steps of a view are 1 or more: reverse what numpy() returns"
            )
        return found

    def transposed(self, *axes: Any) -> Layout:
        """With its axes in this order, by default the other way round. Raises ``ShapeMismatch``."""
        try:
            return self._of(self._array.transpose(*axes))
        except (TypeError, ValueError) as error:
            raise ShapeMismatch(
                f"axes {axes} of shape {self.shape}: {error}; each of its {len(self.shape)} axes comes once"
            ) from None

    def reshaped(self, *shape: Any) -> Layout:
        """The same elements in the same order. Raises ``BadRequest`` if they are not contiguous, ``ShapeMismatch``."""
        if not self.contiguous:
            raise BadRequest(
                f"reshape of shape {self.shape} with strides {self.strides}, whose elements are not contiguous: "
                "reshape the array that it is part of, then take the part"
            )
        try:
            return self._of(self._array.reshape(*shape or ((),)))
        except (TypeError, ValueError) as error:
            raise ShapeMismatch(f"shape {self.shape} cannot become {shape}: {error}") from None

    def runs(self, values: NDArray[Any]) -> Iterator[tuple[int, bytes]]:
        """Addresses and bytes of contiguous pieces, as long as they can be, that hold ``values`` of this shape."""
        if 0 in self.shape:
            return
        order = sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis])
        data = values.transpose(order).tobytes()
        axes = [(self.shape[axis], self.strides[axis]) for axis in order if self.shape[axis] > 1]
        length = self.itemsize
        while axes and axes[-1][1] == length:
            length *= axes.pop()[0]
        for number, place in enumerate(np.ndindex(*(side for side, _ in axes))):
            start = self.address + sum(i * stride for i, (_, stride) in zip(place, axes, strict=True))
            yield start, data[number * length : (number + 1) * length]


class _Elements:
    """What numpy takes for an array at an address."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{itemsize}",
        }


def _checked(item: Any) -> Any:
    """An item of an index, if it is basic indexing."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if not isinstance(item, bool | np.ndarray):
        with suppress(TypeError):
            return index(item)
    raise BadIndex(
        f"an index is {type(item).__name__}; a view takes integers, slices, ... and None: with lists, masks and arrays "
        "index what numpy() returns"
    )


def _text(key: Any) -> str:
    """An index as it was written."""
    if isinstance(key, tuple):
        return ", ".join(map(_text, key))
    if isinstance(key, slice):
        ends = ["" if end is None else str(end) for end in (key.start, key.stop, key.step)]
        return ":".join(ends if key.step is not None else ends[:2])
    return "..." if key is Ellipsis else str(key)
