"""Integers and conditions: forms as long as they are some, elements on the chip otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sley.runtime.frameworks.from_triton.conditions import as_condition, joined
from sley.runtime.frameworks.from_triton.conversion import Conversion, lowers
from sley.runtime.frameworks.from_triton.elements import result, tiles_of
from sley.runtime.frameworks.from_triton.forms import (
    Form,
    Number,
    constant,
    least,
    most,
    number,
)
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation
from sley.runtime.frameworks.from_triton.values import Condition, Constant, Data, Known, Pointer
from sley.runtime.tile.language import maximum, minimum, shift_right
from sley.runtime.tile.trace import Tile

NUMBERS: dict[str, Callable[[Number, Number], Number]] = {
    "arith.divsi": lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)),
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minui": np.minimum,
    "arith.maxui": np.maximum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
}
"""What the host computes of numbers that it knows."""
ELEMENTS: dict[str, Callable[[Tile, Tile], Tile]] = {
    "arith.minsi": minimum,
    "arith.maxsi": maximum,
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.shli": lambda a, b: a << b,
    "arith.shrsi": lambda a, b: a >> b,
    "arith.shrui": shift_right,
}
"""What the chip computes of elements, in int32."""


@lowers("tt.get_program_id", note="a number for each program, known when the kernel is launched")
def lower_program_id(conversion: Conversion, operation: Operation) -> Known:
    return constant(conversion.programs.ids[operation.attributes["axis"]])


@lowers("tt.get_num_programs", note="a number, known when the kernel is launched")
def lower_num_programs(conversion: Conversion, operation: Operation) -> Known:
    return constant(conversion.programs.grid[operation.attributes["axis"]])


@lowers("arith.constant", note="a number in all elements")
def lower_constant(conversion: Conversion, operation: Operation) -> Known:
    type, value = operation.result.type, operation.attributes["value"]
    if value is None:
        raise refuse(operation, "a tensor of several numbers")
    if type.is_float:
        return Constant(float(value), type)
    return constant(value, type.shape)


@lowers("tt.make_range", note="numbers of a coordinate")
def lower_range(conversion: Conversion, operation: Operation) -> Known:
    start, end = operation.attributes["start"], operation.attributes["end"]
    if not operation.result.type.shape:
        return constant(start)
    return Form(start, (), (1,), (end - start,))


@lowers("arith.addi", "arith.subi", note="exact where it is known, else int32")
def lower_add(conversion: Conversion, operation: Operation) -> Known:
    a, b = (conversion.form(value) for value in operation.operands)
    if operation.result.type.element == "i1" or (a.data and b.data) or _wraps(operation, a, b):
        return elements(conversion, operation)
    return _kept(conversion, operation, a.plus(b, 1 if operation.name == "arith.addi" else -1))


@lowers("arith.muli", note="exact where it is known, else int32")
def lower_multiply(conversion: Conversion, operation: Operation) -> Known:
    a, b = (conversion.form(value) for value in operation.operands)
    if operation.result.type.element != "i1" and not _wraps(operation, a, b):
        for one, other in ((a, b), (b, a)):
            factor = other.constant
            if factor is not None:
                return _kept(conversion, operation, one.times(factor))
        if a.scalar and b.scalar:
            return computed(conversion, operation, number(np.multiply(a.base, b.base)))
    return elements(conversion, operation)


@lowers(
    *(name for name in ELEMENTS if name not in ("arith.addi", "arith.subi", "arith.muli")),
    "arith.minui",
    "arith.maxui",
    note="by the host where it is known, else int32",
)
def lower_integers(conversion: Conversion, operation: Operation) -> Known:
    first, second = (as_condition(conversion.known(value)) for value in operation.operands)
    if operation.result.type.element == "i1" and first is not None and second is not None:
        made = joined(operation.name, first, second)
        if made is not None:
            return made
    if operation.result.type.element != "i1" and operation.name in NUMBERS:
        a, b = (conversion.form(value) for value in operation.operands)
        signed = not operation.name.endswith("ui") or min(least(a.low()), least(b.low())) >= 0
        if a.scalar and b.scalar and not a.valid and not b.valid and signed:
            return computed(conversion, operation, number(NUMBERS[operation.name](a.base, b.base)))
        if operation.name in ("arith.minsi", "arith.maxsi") and not a.data and not b.data:
            chosen = _extreme(a, b, operation.name == "arith.minsi")
            if chosen is not None:
                return chosen
    return elements(conversion, operation)


def _extreme(a: Form, b: Form, smaller: bool) -> Form | None:
    """The smaller, or larger, of two forms if it is the same one everywhere."""
    if a.valid or b.valid:
        return None
    difference = a.plus(b, -1)
    if most(difference.high()) <= 0:
        return a if smaller else b
    if least(difference.low()) >= 0:
        return b if smaller else a
    return None


@lowers(
    "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui", note="of the same value"
)
def lower_resize(conversion: Conversion, operation: Operation) -> Known:
    source, to = operation.operands[0].type, operation.result.type
    known = conversion.known(operation.operands[0])
    narrower = operation.name == "arith.trunci"
    known_form = known if isinstance(known, Form) and known.data is None and source.element != "i1" else None
    if known_form is not None and (operation.name != "arith.extui" or least(known_form.low()) >= 0):
        return conversion.checked(known_form, to)
    if isinstance(known, Condition) and not known.shape and all(test.scalar for test in known.tests):
        flag = conversion.flag(known)
        return flag if operation.name == "arith.extui" else flag.times(-1)
    data = conversion.data(known, source)
    tile = conversion.tile(data, source)
    if source.element == "i1" and operation.name == "arith.extsi":
        tile = -tile
    elif to.element == "i1":
        tile = tile & 1
    elif narrower:
        tile = signed(tile, to.bits)
    elif operation.name == "arith.extui" and source.element != "i1":
        if source.bits >= 32:
            raise refuse(operation, "i32 without sign as i64; the device computes in int32")
        tile = tile & ((1 << source.bits) - 1)
    return Data(tile, to, data.column, data.valid)


def signed(tile: Tile, bits: int) -> Tile:
    """The last bits of each element, with their sign."""
    return tile if bits >= 32 else (tile << (32 - bits)) >> (32 - bits)


@lowers("tt.addptr", note="a place in memory")
def lower_add_pointer(conversion: Conversion, operation: Operation) -> Known:
    pointer, offset = conversion.known(operation.operands[0]), conversion.form(operation.operands[1])
    assert isinstance(pointer, Pointer)
    if pointer.form.data and offset.data:
        raise refuse(operation, "an address of two loaded numbers")
    return Pointer(pointer.argument, pointer.form.plus(offset), pointer.element)


def _wraps(operation: Operation, a: Form, b: Form) -> bool:
    """Whether elements may leave a type of fewer than 32 bits, in which case they are computed one by one."""
    return operation.result.type.bits < 32 and bool(a.data or b.data)


def _kept(conversion: Conversion, operation: Operation, form: Form) -> Form:
    return conversion.checked(form, operation.result.type)


def computed(conversion: Conversion, operation: Operation, value: Number) -> Form:
    """A number for each program that the host computed: a coordinate of the grid, perhaps."""
    if not isinstance(value, int):
        conversion.steps.append(value)
    return conversion.checked(constant(value, operation.result.type.shape), operation.result.type)


def elements(conversion: Conversion, operation: Operation) -> Data:
    """An operation of integers on the chip. Raises ``TritonRefused`` for i64."""
    type = operation.result.type
    if type.bits > 32:
        raise refuse(operation, f"elements of {type.element}; the device computes in int32")
    if operation.name not in ELEMENTS:
        raise refuse(operation, "a comparison without signs of what may be negative")
    operands, tiles = tiles_of(conversion, operation)
    if operation.name == "arith.shrui" and type.bits < 32:
        tiles[0] = tiles[0] & ((1 << type.bits) - 1)
    tile = ELEMENTS[operation.name](*tiles)
    if type.element == "i1" and operation.name in ("arith.addi", "arith.subi"):
        tile = tile & 1
    return result(operands, signed(tile, type.bits) if type.bits > 1 else tile, type)
