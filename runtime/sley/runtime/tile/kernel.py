"""Kernels: functions of the tile language, compiled for the arrays, constants, grid and chip of a launch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from itertools import combinations
from typing import Any, ParamSpec, TypeVar

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.device.types import element_type
from sley.runtime.tile.compiler import Compiled, compile_function
from sley.runtime.tile.frontend import Source, flat, read
from sley.runtime.tile.ir import Function
from sley.runtime.tile.operations import STORED, TileError
from sley.runtime.tile.types import ArrayType

Types = ArrayType | tuple[ArrayType, ...]
"""Of an argument: an array, or several in a tuple."""
P = ParamSpec("P")
R = TypeVar("R")


def array_type(name: str, array: Buffer) -> ArrayType:
    """The type of a device array. Raises ``TileError`` for one that kernels cannot use."""
    dtype = ElementType.INT8 if array.dtype == bool else element_type(array.dtype)
    if dtype not in STORED:
        raise TileError(f"{name} is of {array.dtype}; kernels have {', '.join(t.info.name for t in STORED)} and bool")
    assert dtype is not None
    if not array.shape or 0 in array.shape:
        raise TileError(f"{name} has shape {array.shape}; it has one dimension or more, each 1 or more")
    return ArrayType(dtype, array.shape, tuple(stride // array.dtype.itemsize for stride in array.strides))


class Kernel:
    """A kernel. ``kernel[grid](x, y, SIZE=64)`` runs it once for each block of the grid, on any core; it returns
    before they are done. Arrays are device arrays, or tuples of them; all other arguments are constants, for each of
    which it is compiled. An array of bool is one of int8 with 1 and 0. ``stream=``: where to run.

    Programs are kept by the arrays' types and strides, constants, grid and chip.
    """

    def __init__(self, python: Callable[..., None]) -> None:
        self.source = Source(python)
        self.signature = inspect.signature(python)
        if "stream" in self.signature.parameters:
            raise TileError(f"{python.__name__}: stream is an argument of every kernel; name yours in another way")
        self._programs: dict[Any, Compiled] = {}
        update_wrapper(self, python)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        name = self.source.python.__name__
        raise TileError(f"{name}(...) is a kernel: say how many blocks, {name}[grid](...)")

    def __getitem__(self, grid: int | Sequence[int]) -> Callable[..., None]:
        sides = (grid,) if isinstance(grid, int) else tuple(grid)
        if not 1 <= len(sides) <= 3 or any(not isinstance(s, int) or s < 1 for s in sides):
            raise BadRequest(f"grid is {grid!r}; it is one to three numbers of blocks, each 1 or more")
        x, y, z = (*sides, 1, 1)[:3]

        def launch(*args: Any, stream: Stream | None = None, **kwargs: Any) -> None:
            self.launch((x, y, z), args, kwargs, stream)

        return launch

    def launch(
        self, grid: tuple[int, int, int], args: Sequence[Any], kwargs: dict[str, Any], stream: Stream | None
    ) -> None:
        """Compiles the kernel for these arguments if it has not been, and runs it."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if _is_array(value)}
        arrays = dict(flat(given))
        if not arrays:
            raise BadRequest(f"{self.source.python.__name__} without a device array; give device.array(values)")
        device = Device.of(next(iter(arrays.values())))
        types: dict[str, Types] = {
            name: tuple(array_type(f"{name}[{i}]", array) for i, array in enumerate(value))
            if isinstance(value, tuple)
            else array_type(name, value)
            for name, value in given.items()
        }
        for (first, a), (second, b) in combinations(arrays.items(), 2):
            if a.layout.overlaps(b.layout):
                raise BadRequest(
                    f"{first} and {second} of {self.source.python.__name__} share memory: give the array once, and "
                    "load and store that, so that the order of both is kept"
                )
        constants = {name: value for name, value in bound.arguments.items() if name not in given}
        compiled = self.compiled(types, constants, grid, device.config)
        (stream or device.stream).launch(compiled.program, list(arrays.values()), compiled.grid)

    def compiled(
        self, arrays: dict[str, Types], constants: dict[str, Any], grid: tuple[int, int, int], config: ChipConfig
    ) -> Compiled:
        """The program for these types. Raises ``TileError``, ``KernelError``."""
        key = (tuple(arrays.items()), _hashable(constants), grid, config.hash)
        if key not in self._programs:
            self._programs[key] = compile_function(self.function(arrays, constants, grid), config)
        return self._programs[key]

    def function(self, arrays: dict[str, Types], constants: dict[str, Any], grid: tuple[int, int, int]) -> Function:
        """The tile IR for these types, as the source says it. Raises ``TileError``."""
        return read(self.source, arrays, constants, grid)


def _is_array(value: Any) -> bool:
    return isinstance(value, Buffer) or (
        isinstance(value, tuple) and bool(value) and all(isinstance(one, Buffer) for one in value)
    )


def _hashable(constants: dict[str, Any]) -> Any:
    key = tuple((name, type(value), value) for name, value in constants.items())
    try:
        hash(key)
    except TypeError:
        raise TileError(
            f"constants {', '.join(constants)}: one cannot be compared with those of the launch before; use numbers, "
            "tuples and functions"
        ) from None
    return key


def kernel(python: Callable[..., None]) -> Kernel:
    """Makes a function a kernel; see ``Kernel`` and ``sley.runtime.tile.language``."""
    return Kernel(python)


def function(python: Callable[P, R]) -> Callable[P, R]:
    """Makes a function a part of kernels whose loops over ``range`` become hardware loops."""
    source = Source(python)

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        result: R = source.call(*args, **kwargs)
        return result

    return update_wrapper(call, python)
