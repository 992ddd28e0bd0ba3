"""Triton kernels on a device: arguments, programs, launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.stream import Stream
from sley.runtime.device.types import element_type
from sley.runtime.frameworks.from_triton.axes import arrange
from sley.runtime.frameworks.from_triton.parser import read_ttir
from sley.runtime.frameworks.from_triton.plan import Part, Scalars, parts, parts_of
from sley.runtime.frameworks.from_triton.programs import MOST_CLASSES
from sley.runtime.frameworks.from_triton.refusal import TritonRefused
from sley.runtime.frameworks.from_triton.ttir import Operation, TritonFunction, TritonValue
from sley.runtime.frameworks.from_triton.views import Memory, View
from sley.runtime.tile.arguments import root
from sley.runtime.tile.build import Problem, build
from sley.runtime.tile.choices import choice, sides
from sley.runtime.tile.compiler import Compiled
from sley.runtime.tile.operations import STORED, TileError
from sley.runtime.tile.passes.order import OrderError
from sley.runtime.tile.schedule import AUTOMATIC, Schedule

NAMES = {"int8": "i8", "int32": "i32", "float32": "f32", "bfloat16": "bf16", "bool": "i1"}
"""Elements of arrays as TTIR has them."""


@dataclass(frozen=True)
class Step:
    """One launch of a program, with the parts of memory that it takes."""

    compiled: Compiled
    views: tuple[View, ...]


class TritonKernel:
    """A kernel from the text of its TTIR. ``kernel[grid](x, y, n)`` runs it once for each program of the grid, in any
    order, and returns before they are done.

    Arguments are those of the function in TTIR, in order: device arrays for pointers, which point to the first element
    and reach as far as the memory that the array is part of; numbers for scalars; ``TensorDescriptor`` of Triton for
    descriptors. A program is compiled for each combination of numbers. ``stream=``: where to run. ``schedule=``: see
    ``sley.runtime.tile.Schedule``.

    Parameters
    ----------
    text: of TTIR. exchanged: whether the two axes of tensors are columns and rows, instead of rows and columns.

    Attributes: ``name``, ``function``: what was read.

    Raises ``TritonRefused``, when it is launched, with the line of the kernel that the device cannot do.
    """

    def __init__(self, text: str, exchanged: bool = False) -> None:
        self.function: TritonFunction = read_ttir(text)
        arrange(self.function, exchanged)
        self.name = self.function.name
        self._steps: dict[Any, list[Step]] = {}

    def __getitem__(self, grid: int | Sequence[int]) -> Callable[..., None]:
        made = sides(grid, self.name, {})

        def launch(*args: Any, stream: Stream | None = None, schedule: Schedule = AUTOMATIC) -> None:
            arrays, memories, scalars = self.bind(args)
            device = Device.of(next(iter(arrays.values())))
            roots = _roots(arrays)
            for step in self.steps(memories, scalars, made, device.config, schedule):
                buffers = [_viewed(roots[view.array], view) for view in step.views]
                step.compiled.launch(stream or device.stream, buffers)

        return launch

    def priced(self, grid: tuple[int, int, int], args: Sequence[Any]) -> int:
        """The cycles that a launch is thought to take, without it. Raises what a launch does."""
        arrays, memories, scalars = self.bind(args)
        config = Device.of(next(iter(arrays.values()))).config
        made = parts(self.function, memories, scalars, grid)
        return sum(next(_problem(part, config, AUTOMATIC).ranked()).cycles for part in made)

    def bind(self, args: Sequence[Any]) -> tuple[dict[str, Buffer], dict[str, Memory], Scalars]:
        """Arrays by name, what they point into, and numbers by name. Raises ``BadRequest``."""
        wanted = [value for value in self.function.arguments if "." not in value.name]
        if len(args) != len(wanted):
            names = ", ".join(value.name for value in wanted)
            raise BadRequest(f"{self.name} takes {len(wanted)} arguments, {names}; given were {len(args)}")
        arrays: dict[str, Buffer] = {}
        scalars: dict[str, int | float] = {}
        for value, given in zip(wanted, args, strict=True):
            if value.type.kind == "pointer":
                if not isinstance(given, Buffer):
                    raise BadRequest(f"{value.name} of {self.name} is {given!r}; it is a device array")
                arrays[value.name] = given
            elif value.type.kind == "descriptor":
                arrays[value.name] = given.base
                scalars |= _described(value, given)
            else:
                scalars[value.name] = self._scalar(value, given)
        if not arrays:
            raise BadRequest(f"{self.name} without a device array; give device.array(values)")
        roots = _roots(arrays)
        return arrays, {name: _memory(array, roots) for name, array in arrays.items()}, scalars

    def _scalar(self, value: TritonValue, given: Any) -> int | float:
        """A number that its type in TTIR has. Raises ``BadRequest``."""
        whole = value.type.is_integer
        if isinstance(given, Buffer) or not isinstance(given, int if whole else int | float):
            raise BadRequest(f"{value.name} of {self.name} is {given!r}; it is a number, {value.type}")
        if whole and not -(1 << max(value.type.bits - 1, 1)) <= given < 1 << max(value.type.bits - 1, 1):
            raise BadRequest(f"{value.name} of {self.name} is {given}, which {value.type} has not")
        return given

    def steps(
        self,
        memories: dict[str, Memory],
        scalars: Scalars,
        grid: tuple[int, int, int],
        config: ChipConfig,
        schedule: Schedule = AUTOMATIC,
    ) -> list[Step]:
        """The launches that one of Triton becomes. Raises ``TritonRefused``, ``KernelError``."""
        key = (tuple(memories.items()), tuple(scalars.items()), grid, config.hash, schedule)
        if key not in self._steps:
            try:
                self._steps[key] = [
                    step
                    for part in parts(self.function, memories, scalars, grid)
                    for step in self._of_part(part, config, schedule)
                ]
            except TileError as error:
                raise self._placed(error) from None
        return [step for step in self._steps[key] if step.views]

    def _of_part(self, part: Part, config: ChipConfig, schedule: Schedule) -> list[Step]:
        """The launch of a part; one for each program if programs in a row need more semaphores than there are."""
        try:
            return [self._step(part, config, schedule)]
        except OrderError:
            if not 1 < part.programs.count <= MOST_CLASSES:
                raise
        alone = part.programs.classes(np.arange(part.programs.count))
        return [
            self._step(single, config, schedule)
            for one in alone
            for single in parts_of(self.function, part.memories, part.scalars, one)
        ]

    def _step(self, part: Part, config: ChipConfig, schedule: Schedule) -> Step:
        candidate, compiled = build(_problem(part, config, schedule))
        rows = candidate.constants["rows"]
        if rows not in part.views:
            part.function({}, {"rows": rows}, part.sides(rows))
        return Step(compiled, tuple(part.views[rows]))

    def _placed(self, error: TileError) -> TileError:
        """An error of the tile compiler with the line of the kernel in it."""
        words = str(error).split(" ", 2)
        if isinstance(error, TritonRefused):
            return error
        if words[0] != "line" or not words[1].rstrip(":").isdecimal():
            return TritonRefused(f"{self.name}: {error}")
        line = int(words[1].rstrip(":"))
        found: Operation | None = next((op for op in self.function.walk() if op.place.line == line), None)
        place = found.place if found else None
        return TritonRefused(f"{place or self.name}: {words[2]}" + (f"\n    {place.text}" if place else ""))


def _problem(part: Part, config: ChipConfig, schedule: Schedule) -> Problem:
    """A part as a choice of how many programs are rows of one tile."""
    return Problem(part, {}, {"rows": choice(*part.rows)}, part.sides, config, schedule)


def _described(value: TritonValue, given: Any) -> dict[str, int]:
    """Shape and strides of a descriptor that the host made, which are arguments of the function in TTIR. Raises
    ``BadRequest`` for one that pads with something else than 0."""
    if given.padding != "zero":
        raise BadRequest(f"{value.name} is padded with {given.padding}; on the device it is zero")
    sizes = {f"{value.name}.shape.{axis}": int(size) for axis, size in enumerate(given.shape)}
    return sizes | {f"{value.name}.stride.{axis}": int(stride) for axis, stride in enumerate(given.strides)}


def _roots(arrays: dict[str, Buffer]) -> list[Buffer]:
    """The memories that arrays are parts of, each once."""
    found: list[Buffer] = []
    for array in arrays.values():
        whole = root(array)
        if not any(whole is one for one in found):
            found.append(whole)
    return found


def _memory(array: Buffer, roots: list[Buffer]) -> Memory:
    whole, bytes = root(array), array.dtype.itemsize
    number = next(number for number, one in enumerate(roots) if one is whole)
    offset = (array.address - whole.address) // bytes
    dtype = element_type(array.dtype)
    size = whole.layout.span // bytes
    if array.dtype == bool:
        dtype = ElementType.INT8
    known = dtype if dtype in STORED else None
    return Memory(number, offset, size, known, NAMES.get(array.dtype.name, array.dtype.name))


def _viewed(whole: Buffer, view: View) -> Buffer:
    bytes = whole.dtype.itemsize
    return whole.strided(view.shape, tuple(stride * bytes for stride in view.strides), view.offset * bytes)


@cache
def kernel_of(text: str, exchanged: bool = False) -> TritonKernel:
    """The kernel of a text, read once."""
    return TritonKernel(text, exchanged)
