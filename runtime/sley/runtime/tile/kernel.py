"""Kernels: functions of the tile language, compiled for the arrays, constants, grid and chip of a launch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from sley.runtime.tile.build import Candidate, Problem, Types, build
from sley.runtime.tile.choices import Grid, Sides, sides
from sley.runtime.tile.compiler import Compiled
from sley.runtime.tile.frontend import Source, flat, read
from sley.runtime.tile.ir import Function
from sley.runtime.tile.operations import STORED, TileError
from sley.runtime.tile.schedule import AUTOMATIC, Schedule
from sley.runtime.tile.tune import Tuner
from sley.runtime.tile.types import ArrayType

RESERVED = ("stream", "schedule")
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
    strides = tuple(stride // array.dtype.itemsize for stride in array.strides)
    if array.shape[-1] > 1 and strides[-1] != 1:
        raise TileError(f"{name} has strides {array.strides}; elements of its last axis must be contiguous")
    return ArrayType(dtype, array.shape, strides)


@dataclass(frozen=True)
class Call:
    """The arguments of a launch: arrays in their order, their types, and constants."""

    device: Device
    arrays: list[Buffer]
    types: dict[str, Types]
    constants: dict[str, Any]


class Kernel:
    """A kernel. ``kernel[grid](x, y, SIZE=64)`` runs it once for each block of the grid, on any core; it returns
    before they are done. Arrays are device arrays, or tuples of them; all other arguments are constants, for each of
    which it is compiled. An array of bool is one of int8 with 1 and 0. ``stream=``: where to run. ``schedule=``: see
    ``Schedule``.

    The grid is numbers of blocks, or a function that takes constants by their names and returns these. A constant that
    is a ``choice`` is chosen by the compiler. ``kernel.tune[grid](...)`` measures what is likely to be the best.

    Programs are kept by the arrays' types and strides, constants, grid, schedule and chip, also on disk.
    """

    def __init__(self, python: Callable[..., None]) -> None:
        self.source = Source(python)
        self.name = python.__name__
        self.signature = inspect.signature(python)
        for name in RESERVED:
            if name in self.signature.parameters:
                raise TileError(f"{self.name}: {name} is an argument of every kernel; name yours in another way")
        self._programs: dict[Any, list[tuple[Candidate, Compiled]]] = {}
        update_wrapper(self, python)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise TileError(f"{self.name}(...) is a kernel: say how many blocks, {self.name}[grid](...)")

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        if not callable(grid):
            grid = sides(grid, self.name, {})

        def launch(*args: Any, stream: Stream | None = None, schedule: Schedule = AUTOMATIC, **kwargs: Any) -> None:
            call = self.bind(args, kwargs)
            compiled = self.compiled(call.types, call.constants, grid, call.device.config, schedule)
            (stream or call.device.stream).launch(compiled.program, call.arrays, compiled.grid)

        return launch

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
        """The arguments of a launch. Raises ``BadRequest``, ``TileError``."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if _is_array(value)}
        arrays = dict(flat(given))
        if not arrays:
            raise BadRequest(f"{self.name} without a device array; give device.array(values)")
        for (first, a), (second, b) in combinations(arrays.items(), 2):
            if (a if a.base is None else a.base) is (b if b.base is None else b.base) and a.layout.overlaps(b.layout):
                raise BadRequest(
                    f"{first} and {second} of {self.name} share memory: give the array once, and "
                    "load and store that, so that the order of both is kept"
                )
        types: dict[str, Types] = {
            name: tuple(array_type(f"{name}[{i}]", array) for i, array in enumerate(value))
            if isinstance(value, tuple)
            else array_type(name, value)
            for name, value in given.items()
        }
        constants = {name: value for name, value in bound.arguments.items() if name not in given}
        return Call(Device.of(next(iter(arrays.values()))), list(arrays.values()), types, constants)

    def compiled(
        self,
        arrays: dict[str, Types],
        constants: dict[str, Any],
        grid: Grid,
        config: ChipConfig,
        schedule: Schedule = AUTOMATIC,
    ) -> Compiled:
        """The program for these types. Raises ``TileError``, ``KernelError``."""
        key = (tuple(arrays.items()), _hashable(constants), config.hash, schedule)
        for candidate, compiled in self._programs.setdefault(key, []):
            if sides(grid, self.name, candidate.constants) == candidate.grid:
                return compiled
        built = build(Problem(self, arrays, constants, grid, config, schedule))
        self._programs[key].append(built)
        return built[1]

    def function(self, arrays: dict[str, Types], constants: dict[str, Any], grid: Sides) -> Function:
        """The tile IR for these types, as the source says it. Raises ``TileError``."""
        return read(self.source, arrays, constants, grid)

    def forget(self) -> None:
        """Programs are chosen anew, as a choice may be another one now."""
        self._programs.clear()

    @property
    def tune(self) -> Tuner:
        """``kernel.tune[grid](...)``: see ``Tuner``."""
        return Tuner(self)


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
