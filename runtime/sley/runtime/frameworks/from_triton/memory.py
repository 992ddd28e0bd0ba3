"""Loads and stores: of pointers and of tensor descriptors."""

from __future__ import annotations

from collections.abc import Sequence

from sley.runtime.frameworks.from_triton.access import Access, locate, memory_of
from sley.runtime.frameworks.from_triton.conversion import ELEMENTS, Conversion, lowers
from sley.runtime.frameworks.from_triton.forms import Form, constant, least, merged
from sley.runtime.frameworks.from_triton.gathers import gathered
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation, TritonType, TritonValue
from sley.runtime.frameworks.from_triton.values import Condition, Constant, Data, Descriptor, Known, Pointer
from sley.runtime.tile.language import full, load, store
from sley.runtime.tile.trace import where

ALL = Condition(())


@lowers("tt.load", note="a tile of a view; what the mask leaves out is `other`, or 0 without one")
def lower_load(conversion: Conversion, operation: Operation) -> Known:
    pointer = conversion.known(operation.operands[0])
    assert isinstance(pointer, Pointer)
    type = operation.result.type
    other: Known = conversion.known(operation.operands[2]) if len(operation.operands) > 2 else zero(type)
    mask = _mask(conversion, operation.operands[1] if len(operation.operands) > 1 else None)
    if pointer.form.data is not None:
        rows = gathered(conversion, pointer, mask, number_of(other), type)
        return conversion.data(other, type) if rows is None else rows
    return loaded(conversion, pointer, mask, other, type)


@lowers("tt.store", note="a tile of a view; the mask must be upper bounds of coordinates")
def lower_store(conversion: Conversion, operation: Operation) -> None:
    pointer = conversion.known(operation.operands[0])
    assert isinstance(pointer, Pointer)
    mask = _mask(conversion, operation.operands[2] if len(operation.operands) > 2 else None)
    if pointer.form.data is not None:
        raise refuse(operation, "the addresses are computed from loaded numbers; only loads may be")
    if isinstance(mask, Data):
        raise refuse(
            operation, "the mask of a store is not made of coordinates and numbers: store tl.where(...) instead"
        )
    put(conversion, pointer, mask.tests, conversion.known(operation.operands[1]), operation.operands[1].type)


@lowers("tt.make_tensor_descriptor", note="a view with its shape")
def lower_descriptor(conversion: Conversion, operation: Operation) -> Known:
    base, *rest = operation.operands
    pointer, rank = conversion.known(base), len(rest) // 2
    assert isinstance(pointer, Pointer)
    if operation.attributes.get("padding", 1) not in (1, "zero"):
        raise refuse(operation, "padding of a descriptor is zero; of others use a mask with other=")
    strides = []
    for value in rest[rank:]:
        stride = conversion.form(value).constant
        if stride is None:
            raise refuse(operation, f"the stride {value.name} is not the same for all programs and rounds")
        strides.append(stride)
    sizes = tuple(conversion.form(value) for value in rest[:rank])
    return Descriptor(pointer, sizes, tuple(strides), operation.result.type.shape)


@lowers("tt.descriptor_load", note="a tile of a view; 0 outside of it")
def lower_descriptor_load(conversion: Conversion, operation: Operation) -> Known:
    pointer, tests = _block(conversion, operation.operands[0], operation.operands[1:])
    type = operation.result.type
    if type.shape != pointer.form.shape:
        raise refuse(operation, f"the block is {pointer.form.shape}, and the result {type.shape}")
    return loaded(conversion, pointer, Condition(tests, type.shape), zero(type), type)


@lowers("tt.descriptor_store", note="a tile of a view; what is outside of it is not stored")
def lower_descriptor_store(conversion: Conversion, operation: Operation) -> None:
    value = operation.operands[-1]
    pointer, tests = _block(conversion, operation.operands[0], operation.operands[1:-1])
    put(conversion, pointer, tests, conversion.known(value), value.type)


def _block(
    conversion: Conversion, value: TritonValue, indices: Sequence[TritonValue]
) -> tuple[Pointer, tuple[Form, ...]]:
    """Pointers to the elements of a block, and tests for those inside of the descriptor's shape."""
    descriptor = conversion.known(value)
    assert isinstance(descriptor, Descriptor)
    block, rank = descriptor.block, len(descriptor.block)
    form, tests = descriptor.pointer.form.shaped(block, [None] * rank), []
    for axis, (index, stride, size) in enumerate(zip(indices, descriptor.strides, descriptor.sizes, strict=True)):
        coords = tuple(int(other == axis) for other in range(rank))
        place = conversion.form(index).shaped(block, [None] * rank)
        if place.data is not None or least(place.low()) < 0:
            raise refuse(conversion.operation, f"index {axis} of the block may be below 0, or is a loaded number")
        place = place.plus(Form(0, (), coords, block))
        form = form.plus(place, stride)
        tests.append(place.plus(size.shaped(block, [None] * rank), -1))
    return Pointer(descriptor.pointer.argument, form, descriptor.pointer.element), tuple(tests)


def _mask(conversion: Conversion, value: TritonValue | None) -> Condition | Data:
    if value is None:
        return ALL
    mask = conversion.known(value)
    if isinstance(mask, Form):
        return Condition((mask.times(-1),), mask.shape)
    assert isinstance(mask, Condition | Data)
    return mask


def zero(type: TritonType) -> Known:
    return Constant(0.0, type) if type.is_float else constant(0, type.shape)


def number_of(known: Known) -> float | None:
    """The number that all elements are, if it is known."""
    if isinstance(known, Constant):
        return known.value
    return known.constant if isinstance(known, Form) else None


def loaded(conversion: Conversion, pointer: Pointer, mask: Condition | Data, other: Known, type: TritonType) -> Known:
    """What a load gives."""
    memory = memory_of(conversion, pointer)
    tests = mask.tests if isinstance(mask, Condition) else ()
    access = locate(conversion, pointer, tests, False)
    if conversion.box is None or access is None:
        if conversion.box is None and not isinstance(other, Constant):
            conversion.data(other, type)
        made = _placeholder(conversion, pointer, type)
        if conversion.box is None:
            return made
        return other if isinstance(other, Constant | Data) else conversion.data(other, type)
    fill = number_of(other)
    tile = load(access.array, access.place, access.shape, 0.0 if fill is None else fill, access.axes)
    assert tile.dtype is memory.dtype
    data = Data(tile, type, access.column, pointer.form.valid)
    return _chosen(conversion, data, access, mask, other, fill is not None)


def _placeholder(conversion: Conversion, pointer: Pointer, type: TritonType) -> Data:
    """What stands for a loaded tile the first time."""
    strides, shape = pointer.form.coords, pointer.form.shape
    column = len(shape) == 1 and conversion.rows == 1 and strides[0] > 1 and shape[0] > 1
    rows, columns = conversion.whole(type, column)
    tile = full((rows, columns), 0, ELEMENTS["f32" if type.is_float else "i32"]).to(ELEMENTS[type.element])
    return Data(tile, type, column, pointer.form.valid)


def _chosen(
    conversion: Conversion, data: Data, access: Access, mask: Condition | Data, other: Known, filled: bool
) -> Data:
    """The loaded tile where the mask holds, and ``other`` elsewhere, as far as the view has not done that."""
    condition: Known = mask
    if isinstance(mask, Condition):
        tests = access.left if filled else mask.tests
        if not tests:
            return data
        condition = Condition(tests, mask.shape)
    shape = data.type.shape
    flags = conversion.data(condition, TritonType("i1", shape)).turned(data.column)
    instead = conversion.data(other, data.type).turned(data.column)
    tile = where(flags.tile, conversion.tile(data, data.type), conversion.tile(instead, data.type))
    valid = merged(merged(data.valid, flags.valid), instead.valid)
    return Data(tile.to(ELEMENTS[data.type.element]), data.type, data.column, valid)


def put(conversion: Conversion, pointer: Pointer, tests: Sequence[Form], value: Known, type: TritonType) -> None:
    """Stores a tensor. Raises ``TritonRefused`` if something of it is not what the kernel says."""
    memory_of(conversion, pointer)
    access = locate(conversion, pointer, tests, True)
    data = conversion.data(value, type)
    if access is None:
        return
    _right(conversion, (*data.valid, *pointer.form.valid), tests)
    if access.left:
        raise refuse(
            conversion.operation,
            "the mask is no upper bound of each coordinate by itself; store tl.where(...) of what is there instead",
        )
    strided = tuple(size for size in access.shape) != conversion.whole(type, access.column)
    if strided:
        raise refuse(conversion.operation, "several elements are stored to one address")
    store(access.array, access.place, conversion.stored(data, type, access.column), access.axes)


def _right(conversion: Conversion, valid: Sequence[Form], tests: Sequence[Form]) -> None:
    """What is stored must be valid: each test of validity holds where the mask does."""
    for test in valid:
        if not any(one.coords == test.coords and _implies(one, test) for one in tests):
            raise refuse(
                conversion.operation,
                "elements that % wrapped around would be stored; mask them, as of a tile that is not whole",
            )


def _implies(mask: Form, test: Form) -> bool:
    """Whether the test is negative wherever the mask is, for the same factors of coordinates."""
    return mask.data is None and test.data is None and least(mask.plus(test, -1).low()) >= 0
