"""Loads whose addresses are computed from loaded numbers: rows by their numbers, and single elements.

The numbers become a list of distances for Load. Nobody looks at them: one that is outside of the memory reads what is
there, or faults, as it does on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from sley.runtime.frameworks.from_triton.access import OneByOne, bounds, memory_of
from sley.runtime.frameworks.from_triton.conversion import ELEMENTS, Conversion
from sley.runtime.frameworks.from_triton.forms import Form, constant, least, most, number
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import TritonType
from sley.runtime.frameworks.from_triton.values import Condition, Data, Pointer
from sley.runtime.frameworks.from_triton.views import View
from sley.runtime.tile.language import broadcast_to, full, gather
from sley.runtime.tile.trace import Index, Tile, trace


@dataclass(frozen=True)
class _Columns:
    """Elements of one row that is gathered: how many of the tile, and how many the view has from a place on."""

    size: int
    inside: int
    place: Form


def gathered(
    conversion: Conversion, pointer: Pointer, mask: Condition | Data, fill: float | None, type: TritonType
) -> Data | None:
    """What the load gives; None if the mask lets nothing through. Raises ``TritonRefused``, ``Split``, ``OneByOne``."""
    form, operation = pointer.form, conversion.operation
    memory = memory_of(conversion, pointer)
    if isinstance(mask, Data) or fill is None or form.valid:
        raise refuse(
            operation,
            "its addresses are computed from loaded numbers; then the mask must be of coordinates, and other= a number",
        )
    if conversion.guarded:
        raise refuse(operation, "its addresses are loaded numbers, which may be any where the condition does not hold")
    along = _listed_axis(conversion, form)
    walked = tuple(factor or int(axis == along) for axis, factor in enumerate(form.coords))
    made = bounds(form.replaced(coords=walked), mask.tests)
    if made is None:
        return None
    bound, left = made
    if left:
        raise refuse(operation, "its addresses are computed from loaded numbers, and its mask is no upper bound")
    rest = form.without().add(memory.offset)
    columns = _Columns(1, 1, constant(0))
    if len(form.shape) == 2:
        axis = 1 - along
        if form.coords[axis] != 1 and form.shape[axis] > 1:
            raise refuse(
                operation,
                f"rows by their numbers, whose elements are {form.coords[axis]} apart; they must be contiguous",
            )
        size, place = form.shape[axis], constant(0)
        if axis in bound:
            first = least(bound[axis].low())
            place, size = bound[axis].add(-first), -first
            rest = rest.plus(place, -1)
        columns = _Columns(form.shape[axis], size, place)
    if conversion.box is None:
        for value in (rest.base, columns.place.base, *(one.base for one in bound.values())):
            conversion.factors(value)
        return _placeholder(conversion, type)
    return _list(conversion, pointer, rest, columns, along, bound.get(along), fill, type)


def _listed_axis(conversion: Conversion, form: Form) -> int:
    """The axis that the numbers go along."""
    assert form.data is not None
    shape = form.data[0].tile.shape
    if len(form.shape) < 2:
        if len(form.shape) == 1 and conversion.rows > 1:
            raise OneByOne
        return 0
    if min(shape) > 1:
        raise refuse(conversion.operation, "each element has a loaded number of its own; rows have one")
    return 1 if shape[1] > 1 else 0


def _placeholder(conversion: Conversion, type: TritonType) -> Data:
    column = len(type.shape) == 1
    tile = full(conversion.whole(type, column), 0, ELEMENTS["f32" if type.is_float else "i32"])
    return Data(tile.to(ELEMENTS[type.element]), type, column)


def _list(
    conversion: Conversion,
    pointer: Pointer,
    rest: Form,
    columns: _Columns,
    along: int,
    bound: Form | None,
    fill: float,
    type: TritonType,
) -> Data:
    memory, form = memory_of(conversion, pointer), pointer.form
    size = form.shape[along] if form.shape else conversion.rows
    numbers = _numbers(conversion, form, rest, along, size)
    first = min(0, least(rest.low()))
    if first:
        numbers = numbers + first
    reach = memory.size - (columns.inside - 1)
    if most(rest.high()) >= reach:
        raise refuse(conversion.operation, "rows begin behind the memory: mask what is outside")
    view = View(memory.array, 0, (reach, columns.inside), (1, 1))
    array = conversion.views.array(memory, view, False)
    place = (conversion.index(rest.add(-first))[0], conversion.index(columns.place)[0])
    count: Index | int = size
    if bound is not None:
        count = conversion.index(bound.times(-1))[0]
    elif conversion.rows > 1 and conversion.box is not None:
        count = conversion.first_row() * -1 + conversion.box.sides[0]
    tile = gather(array, place, numbers, columns.size, fill, (0, 1), count)
    return Data(tile.T if len(form.shape) == 2 and along == 1 else tile, type, len(form.shape) == 1)


def _numbers(conversion: Conversion, form: Form, rest: Form, along: int, size: int) -> Tile:
    """How far each row is from the place, in elements."""
    coords = tuple(factor if axis == along else 0 for axis, factor in enumerate(form.coords))
    numbers = conversion.form_tile(form.replaced(base=number(0), loops=(), coords=coords))
    apart = conversion.factors(rest.base)
    if conversion.rows > 1 and apart and apart[1][0]:
        iota = Tile(trace().emit("iota", [], axis=0, shape=(conversion.rows, 1))[0])
        numbers = numbers + iota * apart[1][0]
    shape = (size, 1) if numbers.shape[0] > 1 or (form.shape and len(form.shape) == 2 and along == 0) else (1, size)
    return broadcast_to(numbers, shape)
