"""Where a load or store is: from pointer arithmetic and a mask to a view of memory, and a tile of it.

A test of a mask with one coordinate is the size of the view along it, so what is masked out is what the view does not
have. Of the address, what goes with that coordinate is the place along its axis; the rest is a place along an axis of
its own. Nothing is taken for granted: a view that is not inside of the memory, and a test that is no upper bound, are
found here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from sley.runtime.frameworks.from_triton.conversion import Conversion
from sley.runtime.frameworks.from_triton.forms import Form, constant, least, most, number
from sley.runtime.frameworks.from_triton.programs import Split
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.values import Pointer
from sley.runtime.frameworks.from_triton.views import Memory, View
from sley.runtime.tile.trace import Array, Index


class OneByOne(Exception):  # noqa: N818 (no error: the conversion begins again)
    """Programs of this class cannot be rows of one tile."""


@dataclass(frozen=True)
class Access:
    """Attributes: ``array``, ``place``, ``axes``, ``shape``: as ``tile.load`` takes them. ``column``: whether a tensor
    of one axis is a column. ``left``: tests of the mask that the view does not make."""

    array: Array
    place: tuple[Index, ...]
    axes: tuple[int | None, int | None]
    shape: tuple[int, int]
    column: bool
    left: tuple[Form, ...]


@dataclass(frozen=True)
class _Axis:
    stride: int
    size: int
    place: Form


def bounds(form: Form, tests: Sequence[Form], valid: Sequence[Form] = ()) -> tuple[dict[int, Form], list[Form]] | None:
    """Upper bounds by coordinate, as the place minus the size; and the tests that are none. None if nothing is in
    bounds. ``valid``: tests of elements that nobody uses, which are bounds too where they can be.

    Raises ``Split`` where that depends on the program."""
    found: dict[int, Form] = {}
    made_of: dict[int, list[Form]] = {}
    left: list[Form] = []
    for place, test in enumerate((*tests, *valid)):
        if test.data is None and most(test.high()) < 0:
            continue
        counted = [test] if place < len(tests) else []
        axes = [axis for axis, factor in enumerate(test.coords) if factor]
        if not axes and test.scalar:
            holds = np.less(test.base, 0)
            if not holds.any():
                return None
            raise Split(holds.astype(np.int64))
        bound = _bound(test, axes[0]) if len(axes) == 1 and form.coords[axes[0]] > 0 else None
        if bound is None:
            if counted and test.data is None:
                if least(test.low()) >= 0:
                    return None
                _take_apart(test)
            left += counted
            continue
        axis = axes[0]
        tighter = _tighter(bound, found[axis]) if axis in found else bound
        if tighter is None:
            left += counted
            continue
        found[axis] = tighter
        made_of.setdefault(axis, []).extend(counted)
    for axis, bound in list(found.items()):
        if most(bound.high()) < 0:
            continue
        outside = np.greater_equal(bound.base, 0)
        if bound.loops:  # nothing is in bounds in some rounds
            left += made_of[axis]
            del found[axis]
        elif outside.all():
            return None
        else:
            raise Split(outside.astype(np.int64))
    return found, left


def _take_apart(test: Form) -> None:
    """Programs of which a test that is no upper bound holds for all elements, or for none, are classes of their own: of
    them no element is looked at. Raises ``Split``."""
    if isinstance(test.base, int):
        return
    whole, some = np.less(test.high(), 0), np.less(test.low(), 0)
    if whole.any() or not some.all():
        raise Split(whole.astype(np.int64) + some)


def _bound(test: Form, axis: int) -> Form | None:
    """The place minus the size along an axis, if the test is an upper bound of its coordinate."""
    factor = test.coords[axis]
    if test.data is not None or factor < 1 or any(times % factor for _, times in test.loops):
        return None
    loops = tuple((loop, times // factor) for loop, times in test.loops)
    return Form(number(np.floor_divide(test.base, factor)), loops)


def _tighter(a: Form, b: Form) -> Form | None:
    """The one of two bounds that is never further than the other."""
    if least(a.plus(b, -1).low()) >= 0:
        return a
    return b if least(b.plus(a, -1).low()) >= 0 else None


def memory_of(conversion: Conversion, pointer: Pointer) -> Memory:
    """What a pointer points into. Raises ``TritonRefused`` for elements that the chip does not have."""
    memory = conversion.views.memories[pointer.argument]
    flags = memory.element == "i1" and pointer.element == "i8"  # how Triton reads and writes bool
    if memory.dtype is None or (memory.element != pointer.element and not flags):
        raise refuse(
            conversion.operation,
            f"{pointer.argument} points to {pointer.element}; the device has arrays of i8, bf16, f32 and i32",
        )
    return memory


def locate(conversion: Conversion, pointer: Pointer, tests: Sequence[Form], stored: bool) -> Access | None:
    """The view and the place of an access; None if the mask lets nothing through, and the first time.

    Raises ``TritonRefused``, ``Split``, ``OneByOne``."""
    form, operation = pointer.form, conversion.operation
    memory = memory_of(conversion, pointer)
    made = bounds(form, tests, () if stored else form.valid)
    if made is None:
        return None
    bound, left = made
    _together(conversion, form, bound)
    if any(factor < 0 for factor in form.coords):
        raise refuse(operation, f"its elements are {form.coords} apart; strides are 0 or more")
    rest, axes = form.without().add(memory.offset), []
    for axis, (stride, size) in enumerate(zip(form.coords, form.shape, strict=True)):
        place = constant(0)
        if axis in bound:
            first = least(bound[axis].low())
            place, size = bound[axis].add(-first), -first
            rest = rest.plus(place, -stride)
        axes.append(_Axis(stride, size, place))
    if conversion.box is None:
        conversion.factors(rest.base)
        for one in axes:
            conversion.factors(one.place.base)
        return None
    return _access(conversion, memory, rest, axes, tuple(left), stored, form)


def _together(conversion: Conversion, form: Form, bound: dict[int, Form]) -> None:
    """Programs that are rows of one tile have the same bounds: those with none left are taken apart."""
    if conversion.rows == 1 or conversion.box is None:
        return
    for axis, one in bound.items():
        made = conversion.factors(one.base)
        if made is not None and made[1][0]:
            whole = np.less_equal(np.add(one.high(), form.shape[axis]), 0)
            if whole.any():
                raise Split(whole.astype(np.int64))
            raise OneByOne


def _access(
    conversion: Conversion,
    memory: Memory,
    rest: Form,
    axes: list[_Axis],
    left: tuple[Form, ...],
    stored: bool,
    form: Form,
) -> Access:
    rows, first = conversion.rows, least(rest.low())
    sizes: list[int] = []
    strides: list[int] = []
    place: list[Index] = []

    def axis(stride: int, size: int, index: Index) -> int:
        sizes.append(size)
        strides.append(stride)
        place.append(index)
        return len(sizes) - 1

    rest, row_axis = rest.add(-first), None
    if rows > 1 and conversion.box is not None:
        made = conversion.factors(rest.base)
        apart = made[1][0] if made else 0
        if apart < 0 or (stored and not apart):
            raise OneByOne
        if apart:
            row_axis = axis(apart, conversion.box.sides[0], conversion.first_row())
            rest = rest.replaced(base=number(np.subtract(rest.base, apart * conversion.box.coordinates[0])))
    unit = _unit(rest)
    if unit and conversion.box is not None:
        scaled = Form(number(np.floor_divide(rest.base, unit)), tuple((loop, f // unit) for loop, f in rest.loops))
        axis(unit, most(scaled.high()) + 1, conversion.index(scaled)[0])
    along: list[int | None] = []
    shape: list[int] = []
    for one, size in zip(axes, form.shape, strict=True):
        along.append(axis(one.stride, one.size, conversion.index(one.place)[0]) if one.stride else None)
        shape.append(size if one.stride else 1)
    column = len(shape) == 1 and rows == 1 and axes[0].stride > 1 and shape[0] > 1
    if column:
        along, shape = [along[0], None], [shape[0], 1]
    elif len(shape) < 2:
        along, shape = [row_axis, *(along or [None])], [1 if row_axis is None else rows, *(shape or [1])]
    if not sizes:
        axis(1, 1, conversion.index(constant(0))[0])
    _contiguous(conversion, along, shape, strides, sizes)
    view = View(memory.array, first, tuple(sizes), tuple(strides))
    if first < 0 or view.last >= memory.size:
        remedy = "of its mask only upper bounds keep it inside" if left else "mask what is outside"
        raise refuse(
            conversion.operation,
            f"it reaches elements {first - memory.offset} to {view.last - memory.offset} from the pointer, whose "
            f"memory has {-memory.offset} to {memory.size - memory.offset - 1}: {remedy}",
        )
    array = conversion.views.array(memory, view, stored)
    return Access(array, tuple(place), (along[0], along[1]), (shape[0], shape[1]), column, left)


def _unit(rest: Form) -> int:
    """The largest number that all places of a form are multiples of; 0 if there is one place."""
    unit = int(np.gcd.reduce(np.atleast_1d(np.asarray(rest.base))))
    for _, factor in rest.loops:
        unit = gcd(unit, factor)
    return unit


def _contiguous(
    conversion: Conversion, along: list[int | None], shape: list[int], strides: list[int], sizes: list[int]
) -> None:
    """Raises ``TritonRefused`` for a tile of which neither rows nor columns are contiguous."""

    def single(number: int) -> bool:
        axis = along[number]
        return axis is None or shape[number] == 1 or sizes[axis] == 1 or strides[axis] == 1

    if single(0) or single(1):
        return
    if conversion.rows > 1:
        raise OneByOne
    apart = " and ".join(str(strides[axis]) for axis in along if axis is not None)
    raise refuse(
        conversion.operation,
        f"its elements are {apart} apart along its axes; those along one of them must be contiguous: use a copy",
    )
