"""The arrays of a converted kernel: parts of memory with the strides that its pointer arithmetic has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Value
from sley.runtime.tile.trace import Array
from sley.runtime.tile.types import ArrayType


@dataclass(frozen=True)
class Memory:
    """What a pointer argument points into. ``array``: the number of the first argument in the same memory. ``offset``:
    of the pointer, and ``size``: of the memory, in elements. ``dtype``: None for elements that the chip does not have,
    which are called ``element`` in TTIR."""

    array: int
    offset: int
    size: int
    dtype: ElementType | None
    element: str


@dataclass(frozen=True)
class View:
    """A part of memory as an array. ``offset`` and ``strides`` in elements; ``array`` as of ``Memory``."""

    array: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def last(self) -> int:
        """The element of the memory that is the last of the view."""
        return self.offset + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))

    def overlaps(self, other: View) -> bool:
        """Whether they have an element in common."""
        if self.array != other.array or self.last < other.offset or other.last < self.offset:
            return False
        return bool(np.shares_memory(np.asarray(_Claim(self)), np.asarray(_Claim(other))))


class _Claim:
    """A view as an array that claims to be in memory, one byte an element. None of them is ever read."""

    def __init__(self, view: View) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|i1",
            "shape": view.shape,
            "strides": view.strides,
            "data": (view.offset + 1, True),
        }


class Views:
    """Parameters: ``memories``: of each pointer argument by its name. Attributes: ``arrays``: of the function, with the
    part of memory that each is. ``stored``: those that are written."""

    def __init__(self, memories: dict[str, Memory]) -> None:
        self.memories = memories
        self.arrays: dict[View, Value] = {}
        self.stored: set[View] = set()

    def array(self, memory: Memory, view: View, stored: bool) -> Array:
        """The array of a view, made if it is new."""
        assert memory.dtype is not None
        if view not in self.arrays:
            type = ArrayType(memory.dtype, view.shape, view.strides)
            self.arrays[view] = Value(type, f"array{len(self.arrays)}")
        if stored:
            self.stored.add(view)
        return Array(self.arrays[view])

    def collision(self) -> tuple[View, View] | None:
        """A view that is written, and another one that has elements in common: nothing orders what is done to both."""
        for stored in self.stored:
            for view in self.arrays:
                if view != stored and view.overlaps(stored):
                    return stored, view
        return None
