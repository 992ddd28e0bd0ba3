"""A Triton kernel as a function of the tile IR, for the programs of one class.

Operations are converted one after the other by the functions that ``lowers`` registers. What is known of an integer
stays a form; everything else becomes tiles. It is done twice: the first time to see which numbers of programs places in
memory depend on, the second time on a grid that makes these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sley.abi.types import ElementType
from sley.runtime.frameworks.from_triton.forms import Form, Loop, Number, constant, least, most
from sley.runtime.frameworks.from_triton.programs import Box, Programs, Vector
from sley.runtime.frameworks.from_triton.refusal import REASONS, UNKNOWN, TritonRefused, refuse
from sley.runtime.frameworks.from_triton.ttir import Operation, Region, TritonType, TritonValue
from sley.runtime.frameworks.from_triton.values import Condition, Constant, Data, Known
from sley.runtime.frameworks.from_triton.views import Views
from sley.runtime.tile.language import broadcast_to, full
from sley.runtime.tile.operations import TileError
from sley.runtime.tile.trace import CURRENT, Index, Tile, Trace, as_index, computed, trace

INT32, FP32 = ElementType.INT32, ElementType.FP32
ELEMENTS = {"i8": ElementType.INT8, "bf16": ElementType.BF16, "f32": FP32, "i32": INT32}
"""Types that arrays and tiles have."""
Lowering = Callable[["Conversion", Operation], Known | list[Known] | None]
LOWERINGS: dict[str, Lowering] = {}
"""How each operation of TTIR is converted."""
BRANCHES = ("cf.br", "cf.cond_br")
"""Ends of blocks that go to another one."""
NOTES: dict[str, str] = {}
"""What each of them becomes, in words, for the table of the guide."""


def lowers(*names: str, note: str = "") -> Callable[[Lowering], Lowering]:
    """Registers a function for operations. ``note``: what it becomes."""

    def register(function: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, function))
        NOTES.update(dict.fromkeys(names, note))
        return function

    return register


class Unrolled(Exception):  # noqa: N818 (no error: the loop is converted again)
    """What a round computes is no sum of multiples of its number: each is converted for itself."""

    def __init__(self, loop: Loop) -> None:
        super().__init__("a loop is unrolled")
        self.loop = loop


@dataclass(eq=False)
class Conversion:
    """The work on one class of programs.

    Parameters
    ----------
    programs: of the class. box: the grid, or None the first time. rows: how many programs along the first axis of the
        box are rows of one tile. views: arrays of the function.

    Attributes
    ----------
    values: what is known of each value. needed: numbers of programs that the grid must make. steps: others that were
        computed. guarded: whether what is converted may be where the kernel does not come.
    """

    programs: Programs
    box: Box | None
    rows: int
    views: Views

    def __post_init__(self) -> None:
        self.values: dict[TritonValue, Known] = {}
        self.needed: list[Vector] = []
        self.steps: list[Vector] = []
        self.operation = Operation("", [], [])
        self.guarded = False

    # Operations

    def region(self, region: Region) -> None:
        """Converts all operations of a region but its end."""
        for operation in region.operations:
            if operation.name not in (*BRANCHES, "scf.yield", "tt.return"):
                self.convert(operation)

    def convert(self, operation: Operation) -> None:
        """Converts an operation. Raises ``TritonRefused``, ``Split``."""
        lowering = LOWERINGS.get(operation.name)
        if lowering is None:
            raise refuse(operation, REASONS.get(operation.name, UNKNOWN))
        outer, self.operation = self.operation, operation
        line, trace().line = trace().line, operation.place.line
        try:
            results = lowering(self, operation)
        except TileError as error:
            if isinstance(error, TritonRefused):
                raise
            raise refuse(operation, str(error)) from None
        self.operation, trace().line = outer, line
        made = results if isinstance(results, list) else [] if results is None else [results]
        self.values.update(zip(operation.results, made, strict=True))

    def known(self, value: TritonValue) -> Known:
        return self.values[value]

    def form(self, value: TritonValue) -> Form:
        """A value as a form: of data, one with data. Raises ``TritonRefused`` for what is none."""
        found = self.values[value]
        if isinstance(found, Condition) and not found.shape:
            return self.flag(found)
        if isinstance(found, Data) and found.type.is_integer:
            return Form(0, (), (0,) * len(found.type.shape), found.type.shape, (found, 1), found.valid)
        if not isinstance(found, Form):
            raise refuse(self.operation, f"{value.name} is {type(found).__name__.lower()}; it must be an integer")
        return found

    def flag(self, condition: Condition) -> Form:
        """A scalar condition as 1 or 0."""
        holds: Any = True
        for test in condition.tests:
            if not test.scalar:
                raise refuse(self.operation, "the condition is not known when the kernel is launched")
            holds = np.logical_and(holds, np.less(test.base, 0))
        return constant(np.asarray(holds).astype(np.int64))

    @contextmanager
    def probing(self) -> Iterator[None]:
        """What is converted is thrown away: places in memory are not looked at."""
        box, needed, steps = self.box, len(self.needed), len(self.steps)
        self.box = None
        try:
            yield
        finally:
            self.box = box
            del self.needed[needed:], self.steps[steps:]

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """What is converted is computed even if the kernel does not come there."""
        outer, self.guarded = self.guarded, True
        try:
            yield
        finally:
            self.guarded = outer

    # Tiles

    def tile(self, known: Known, type: TritonType) -> Tile:
        """A value as a tile to compute with, fp32 or int32; axes of one element stand for any size."""
        if isinstance(known, Data):
            return known.tile.to(INT32) if type.is_integer else computed(known.tile)
        if isinstance(known, Constant):
            return full((1, 1), known.value)
        if isinstance(known, Form):
            if type.bits > 32:
                self.checked(known, TritonType("i32"))
            if type.bits > 32 and known.data is not None:
                raise refuse(self.operation, f"elements of {type.element}; the device computes in int32")
            return self.form_tile(known)
        if isinstance(known, Condition):
            return self.condition_tile(known)
        raise refuse(self.operation, f"a {known.__class__.__name__.lower()} is no number")

    def data(self, known: Known, type: TritonType) -> Data:
        """A value as elements on the chip."""
        if isinstance(known, Data):
            return known
        return Data(self.tile(known, type), type, valid=known.valid if isinstance(known, Form) else ())

    def stored(self, known: Known, type: TritonType, column: bool = False) -> Tile:
        """A value as a whole tile of its element type, with nothing that stands for any size."""
        element, shape = ELEMENTS.get(type.element, INT32), self.whole(type, column)
        if isinstance(known, Constant):
            return full(shape, known.value).to(element)
        if isinstance(known, Form) and known.constant is not None and type.element == "i32":
            return full(shape, known.constant, INT32)
        data = self.data(known, type).turned(column)
        tile = data.tile
        return tile if tile.shape == shape and tile.dtype is element else broadcast_to(tile, shape).to(element)

    def whole(self, type: TritonType, column: bool = False) -> tuple[int, int]:
        """Rows and columns of a tile of this type."""
        shape = type.shape
        if len(shape) == 2:
            return shape[0], shape[1]
        size = shape[0] if shape else 1
        return (size, 1) if column else (self.rows, size)

    def form_tile(self, form: Form) -> Tile:
        """int32 elements of a form. Raises ``TritonRefused`` if they leave int32."""
        if form.data is None:
            self.checked(form, TritonType("i32"))
        index, row = self.index(form)
        total = Tile(trace().emit("splat", [index.value])[0])
        parts: list[tuple[int, int, int]] = []
        if self.rows > 1 and row:
            parts.append((0, self.rows, row))
        first = 2 - len(form.shape)
        parts += [(first + axis, form.shape[axis], factor) for axis, factor in enumerate(form.coords) if factor]
        for axis, size, factor in parts:
            shape = (size, 1) if axis == 0 else (1, size)
            total = total + Tile(trace().emit("iota", [], axis=axis, shape=shape)[0]) * factor
        if form.data:
            data, factor = form.data
            if len(data.type.shape) == 1:
                data = data.turned(False)
            total = total + (computed(data.tile) * factor if factor != 1 else data.tile)
        return total

    def condition_tile(self, condition: Condition) -> Tile:
        """1 where a condition holds, else 0; int32."""
        made: Tile | None = None
        for test in condition.tests:
            part = self.form_tile(test) < 0
            made = part if made is None else made & part
        return full((1, 1), 1, INT32) if made is None else made

    # Numbers of programs

    def index(self, form: Form) -> tuple[Index, int]:
        """The base and the loops of a form as an index, of the first row; and how much more it is from row to row."""
        factors = self.factors(form.base)
        first, along = factors if factors is not None else (0, [0, 0, 0])
        total: Any = first
        for axis, factor in enumerate(along):
            if factor:
                size = self.rows if axis == 0 else 1
                total = Index(trace().emit("block", [], axis=axis)[0]) * (factor * size) + total
        for loop, factor in form.loops:
            total = loop.variable * factor + total
        return as_index(total), along[0] if along else 0

    def factors(self, value: Number) -> tuple[int, list[int]] | None:
        """How coordinates of the grid make a number of programs; the first time it is noted, and None."""
        if isinstance(value, int):
            return value, [0, 0, 0]
        if self.box is None:
            self.needed.append(value)
            return None
        found = self.box.factors(value)
        assert found is not None, "the grid makes all numbers that were needed"
        return found

    def checked(self, form: Form, type: TritonType) -> Form:
        """The form, if no value of it leaves the integer type. Raises ``TritonRefused``."""
        limit = 1 << (type.bits - 1 if type.bits > 1 else 1)
        if form.data is None and (least(form.low()) < -limit or most(form.high()) >= limit):
            raise refuse(
                self.operation,
                f"the value is {least(form.low())} to {most(form.high())} for the programs of this launch, which "
                f"leaves {type.element}; compute it in i64: .to(tl.int64)",
            )
        return form

    def first_row(self) -> Index:
        """The place along the first axis of the grid of the first row of a tile."""
        return Index(trace().emit("block", [], axis=0)[0]) * self.rows


def narrow(type: TritonType) -> ElementType:
    """The type that computed elements are rounded to: only bf16 is not what they are computed in."""
    return ElementType.BF16 if type.element == "bf16" else FP32 if type.is_float else INT32


def in_trace(work: Callable[[], None]) -> Trace:
    """What ``work`` emits."""
    made = Trace()
    token = CURRENT.set(made)
    try:
        work()
    finally:
        CURRENT.reset(token)
    return made
