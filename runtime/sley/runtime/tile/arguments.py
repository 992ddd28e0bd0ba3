"""The arguments of a launch: device arrays and their types, and constants."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.types import element_type
from sley.runtime.tile.frontend import flat
from sley.runtime.tile.operations import STORED, TileError
from sley.runtime.tile.types import ArrayType

Types = ArrayType | tuple[ArrayType, ...]
"""Of an argument: an array, or several in a tuple."""


def array_type(name: str, array: Buffer) -> ArrayType:
    """The type of a device array. Raises ``TileError`` for one that kernels cannot use."""
    dtype = ElementType.INT8 if array.dtype == bool else element_type(array.dtype)
    if dtype not in STORED:
        raise TileError(f"{name} is of {array.dtype}; kernels have {', '.join(t.info.name for t in STORED)} and bool")
    assert dtype is not None
    if not array.shape or 0 in array.shape:
        raise TileError(f"{name} has shape {array.shape}; it has one dimension or more, each 1 or more")
    return ArrayType(dtype, array.shape, tuple(stride // array.dtype.itemsize for stride in array.strides))


@dataclass(frozen=True)
class Call:
    """The arguments of a launch: arrays in their order, their types, and constants."""

    device: Device
    arrays: dict[str, Buffer]
    types: dict[str, Types]
    constants: dict[str, Any]

    def check_apart(self, name: str, reads: frozenset[str]) -> None:
        """Raises ``BadRequest`` if an array that the kernel writes shares memory with another one."""
        for (first, a), (second, b) in combinations(self.arrays.items(), 2):
            if (first in reads and second in reads) or root(a) is not root(b) or not a.layout.overlaps(b.layout):
                continue
            raise BadRequest(
                f"{first} and {second} of {name} share memory, and one is written: give the array once, and load and "
                "store that, so that the order of both is kept"
            )


def bind(name: str, signature: inspect.Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
    """The arguments of a launch of the kernel ``name``. Raises ``BadRequest``, ``TileError``."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    given = {name: value for name, value in bound.arguments.items() if _is_array(value)}
    arrays = dict(flat(given))
    if not arrays:
        raise BadRequest(f"{name} without a device array; give device.array(values)")
    types: dict[str, Types] = {
        name: tuple(array_type(f"{name}[{i}]", array) for i, array in enumerate(value))
        if isinstance(value, tuple)
        else array_type(name, value)
        for name, value in given.items()
    }
    constants = {name: value for name, value in bound.arguments.items() if name not in given}
    return Call(Device.of(next(iter(arrays.values()))), arrays, types, constants)


def root(array: Buffer) -> Buffer:
    """The array that one is a view of, or itself."""
    return array if array.base is None else array.base


def _is_array(value: Any) -> bool:
    return isinstance(value, Buffer) or (
        isinstance(value, tuple) and bool(value) and all(isinstance(one, Buffer) for one in value)
    )
