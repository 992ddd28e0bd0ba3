"""From a Triton kernel and the arguments of a launch to functions of the tile IR, one for each class of programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sley.runtime.frameworks.from_triton.conditions
import sley.runtime.frameworks.from_triton.control
import sley.runtime.frameworks.from_triton.external
import sley.runtime.frameworks.from_triton.floats
import sley.runtime.frameworks.from_triton.integers
import sley.runtime.frameworks.from_triton.memory
import sley.runtime.frameworks.from_triton.products
import sley.runtime.frameworks.from_triton.quotients
import sley.runtime.frameworks.from_triton.reductions
import sley.runtime.frameworks.from_triton.shapes  # noqa: F401 (each registers its operations)
from sley.runtime.frameworks.from_triton.access import OneByOne
from sley.runtime.frameworks.from_triton.branches import convert_function
from sley.runtime.frameworks.from_triton.conversion import Conversion, in_trace
from sley.runtime.frameworks.from_triton.forms import Form, constant
from sley.runtime.frameworks.from_triton.programs import MOST_CLASSES, MOST_PROGRAMS, Box, Programs, Split, choose_box
from sley.runtime.frameworks.from_triton.refusal import TritonRefused
from sley.runtime.frameworks.from_triton.ttir import TritonFunction, TritonValue
from sley.runtime.frameworks.from_triton.values import Constant, Descriptor, Known, Pointer
from sley.runtime.frameworks.from_triton.views import Memory, View, Views
from sley.runtime.tile.choices import Sides, cdiv
from sley.runtime.tile.ir import Function

ROWS = (64, 32, 16, 8, 4, 2, 1)
"""How many programs may be rows of one tile."""
Scalars = Mapping[str, int | float]


@dataclass(eq=False)
class Part:
    """The programs of one class, on a grid. ``rows``: how many of them may be rows of one tile. ``views``: by rows,
    what the arrays of the function are."""

    kernel: TritonFunction
    memories: dict[str, Memory]
    scalars: Scalars
    programs: Programs
    box: Box
    rows: tuple[int, ...] = (1,)
    views: dict[int, list[View]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.kernel.name

    def sides(self, rows: int) -> Sides:
        """The grid."""
        x, y, z = self.box.sides
        return cdiv(x, rows), y, z

    def function(self, arrays: dict[str, Any], constants: dict[str, Any], grid: Sides) -> Function:
        """The tile IR. Raises ``TritonRefused``, ``Split``, ``OneByOne``."""
        rows = constants["rows"]
        views = Views(self.memories)
        _, body = convert(self.kernel, self.scalars, self.programs, self.box, rows, views)
        self.views[rows] = list(views.arrays)
        collision = views.collision()
        if collision:
            first, second = (self._argument(view) for view in collision)
            raise TritonRefused(
                f"{self.kernel.name}: what is stored to {first} and what is accessed by {second} have elements in "
                "common, in other shapes, so their order is not known: use an array of its own for the result"
            )
        return Function(self.name, list(views.arrays.values()), self.sides(rows), body.block)

    def _argument(self, view: View) -> str:
        return next(name for name, memory in self.memories.items() if memory.array == view.array)


def convert(
    kernel: TritonFunction, scalars: Scalars, programs: Programs, box: Box | None, rows: int, views: Views
) -> tuple[Conversion, Any]:
    """The kernel converted once. Raises ``TritonRefused``, ``Split``, ``OneByOne``."""
    conversion = Conversion(programs, box, rows, views)
    for value in kernel.arguments:
        conversion.values[value] = _argument(value, views.memories, scalars)
    return conversion, in_trace(lambda: convert_function(conversion, kernel))


def _argument(value: TritonValue, memories: dict[str, Memory], scalars: Scalars) -> Known:
    if value.type.kind == "pointer":
        return Pointer(value.name, Form(), value.type.element)
    if value.type.kind == "descriptor":
        axes = range(len(value.type.shape))
        sizes = tuple(constant(int(scalars[f"{value.name}.shape.{axis}"])) for axis in axes)
        strides = tuple(int(scalars[f"{value.name}.stride.{axis}"]) for axis in axes)
        return Descriptor(Pointer(value.name, Form(), value.type.element), sizes, strides, value.type.shape)
    given = scalars[value.name]
    return Constant(float(given), value.type) if value.type.is_float else constant(int(given))


def parts(
    kernel: TritonFunction, memories: dict[str, Memory], scalars: Scalars, grid: tuple[int, int, int]
) -> list[Part]:
    """All classes of a launch. Raises ``TritonRefused``."""
    if int(np.prod(grid)) > MOST_PROGRAMS:
        raise TritonRefused(f"{kernel.name} on {grid} programs; at most {MOST_PROGRAMS}, as their ids are numbers here")
    return parts_of(kernel, memories, scalars, Programs.all(grid))


def parts_of(kernel: TritonFunction, memories: dict[str, Memory], scalars: Scalars, programs: Programs) -> list[Part]:
    """All classes of some programs. Raises ``TritonRefused``."""
    found: list[Part] = []
    left = [programs]
    while left:
        programs = left.pop()
        try:
            found.append(_part(kernel, memories, scalars, programs))
        except Split as split:
            left += programs.classes(split.labels)
        if len(found) + len(left) > MOST_CLASSES:
            raise TritonRefused(
                f"{kernel.name}: the programs do {len(found) + len(left)} different things or more; each is a launch, "
                f"at most {MOST_CLASSES}"
            )
    return found


def _part(kernel: TritonFunction, memories: dict[str, Memory], scalars: Scalars, programs: Programs) -> Part:
    seen, _ = convert(kernel, scalars, programs, None, 1, Views(memories))
    box = choose_box(programs, seen.needed, seen.steps)
    if box is None:
        raise Split(_apart(programs, seen.needed))
    longest = int(np.argmax(box.sides))
    order = [longest, *(axis for axis in range(3) if axis != longest)]
    box = Box(tuple(box.sides[axis] for axis in order), tuple(box.coordinates[axis] for axis in order))
    part = Part(kernel, memories, scalars, programs, box)
    flat = all(len(value.type.shape) < 2 for operation in kernel.walk() for value in operation.results)
    if flat and box.sides[0] > 1:
        part.rows = _rows(part)
    part.function({}, {"rows": 1}, part.sides(1))
    return part


def _rows(part: Part) -> tuple[int, ...]:
    """How many programs may be rows of one tile. Raises ``Split`` if that takes classes of their own."""
    try:
        part.function({}, {"rows": 2}, part.sides(2))
    except OneByOne:
        return (1,)
    return tuple(rows for rows in ROWS if rows < 2 * part.box.sides[0])


def _apart(programs: Programs, needed: list[Any]) -> Any:
    """Labels that take programs apart of which no grid is found: by the number that has the fewest values."""
    counts = [(len(np.unique(value)), number) for number, value in enumerate(needed)]
    least = min((count, number) for count, number in counts if count > 1)
    return needed[least[1]]
