"""Kernels: functions of the tile language, compiled for the arrays, constants, grid and chip of a launch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, ParamSpec, TypeVar

from sley.abi.config import ChipConfig
from sley.runtime.device.stream import Stream
from sley.runtime.tile.arguments import Call, Types, bind
from sley.runtime.tile.build import Candidate, Problem, build
from sley.runtime.tile.choices import Grid, Sides, sides
from sley.runtime.tile.compiler import Compiled
from sley.runtime.tile.frontend import Source, read
from sley.runtime.tile.ir import Function
from sley.runtime.tile.operations import TileError
from sley.runtime.tile.portable import Exporter
from sley.runtime.tile.schedule import AUTOMATIC, Schedule
from sley.runtime.tile.tune import Tuner

RESERVED = ("stream", "schedule")
P = ParamSpec("P")
R = TypeVar("R")


class Kernel:
    """A kernel. ``kernel[grid](x, y, SIZE=64)`` runs it once for each block of the grid, on any core; it returns
    before they are done. Arrays are device arrays, or tuples of them; all other arguments are constants, for each of
    which it is compiled. An array of bool is one of int8 with 1 and 0. ``stream=``: where to run. ``schedule=``: see
    ``Schedule``.

    The grid is numbers of blocks, or a function that takes constants by their names and returns these. A constant that
    is a ``choice`` is chosen by the compiler. ``kernel.tune[grid](...)`` measures what is likely to be the best;
    ``kernel.portable[grid](...)`` is the kernel for any chip, to be saved.

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
            call.check_apart(self.name, compiled.program.reads)
            compiled.launch(stream or call.device.stream, [*call.arrays.values()])

        return launch

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
        """The arguments of a launch. Raises ``BadRequest``, ``TileError``."""
        return bind(self.name, self.signature, args, kwargs)

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
    def portable(self) -> Exporter:
        """``kernel.portable[grid](...)``: see ``Exporter``."""
        return Exporter(self)

    @property
    def tune(self) -> Tuner:
        """``kernel.tune[grid](...)``: see ``Tuner``."""
        return Tuner(self)


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
