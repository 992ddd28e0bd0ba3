"""Shapes of tensors: scalars in all elements, new axes, exchanged ones."""

from __future__ import annotations

from dataclasses import replace

from sley.runtime.frameworks.from_triton.conversion import Conversion, lowers
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation
from sley.runtime.frameworks.from_triton.values import Constant, Descriptor, Known, Pointer


def reshaped(known: Known, shape: tuple[int, ...], axes: list[int | None], operation: Operation) -> Known:
    """On another shape, whose axis i is the axis ``axes[i]``, or a new one."""
    if isinstance(known, Constant):
        return Constant(known.value, operation.result.type)
    if isinstance(known, Pointer):
        return replace(known, form=known.form.shaped(shape, axes))
    if isinstance(known, Descriptor):
        raise refuse(operation, "of a descriptor")
    return known.shaped(shape, axes)


@lowers("tt.splat", note="an axis of one element stands for any size")
def lower_splat(conversion: Conversion, operation: Operation) -> Known:
    shape = operation.result.type.shape
    _check(conversion, operation)
    return reshaped(conversion.known(operation.operands[0]), shape, [None] * len(shape), operation)


@lowers("tt.expand_dims", note="a row or a column")
def lower_expand(conversion: Conversion, operation: Operation) -> Known:
    _check(conversion, operation)
    shape, new = operation.result.type.shape, operation.attributes["axis"]
    if "axes" in operation.attributes:
        return _named(conversion, operation)
    axes: list[int | None] = list(range(len(shape) - 1))
    axes.insert(new, None)
    return reshaped(conversion.known(operation.operands[0]), shape, axes, operation)


@lowers("tt.broadcast", note="an axis of one element stands for any size")
def lower_broadcast(conversion: Conversion, operation: Operation) -> Known:
    if "axes" in operation.attributes:
        return _named(conversion, operation)
    source, shape = operation.operands[0].type.shape, operation.result.type.shape
    kept = [axis if source[axis] == shape[axis] else None for axis in range(len(shape))]
    return reshaped(conversion.known(operation.operands[0]), shape, kept, operation)


@lowers("tt.trans", note="rows as columns; of what is loaded it costs nothing")
def lower_transpose(conversion: Conversion, operation: Operation) -> Known:
    _check(conversion, operation)
    if "axes" in operation.attributes:
        return _named(conversion, operation)
    order = operation.attributes["order"]
    return reshaped(conversion.known(operation.operands[0]), operation.result.type.shape, list(order), operation)


@lowers("tt.reshape", note="of axes of one element alone")
def lower_reshape(conversion: Conversion, operation: Operation) -> Known:
    _check(conversion, operation)
    if "axes" in operation.attributes:
        return _named(conversion, operation)
    source, shape = operation.operands[0].type.shape, operation.result.type.shape
    kept = [axis for axis, size in enumerate(source) if size != 1]
    if [source[axis] for axis in kept] != [size for size in shape if size != 1] or len(source) > 2:
        raise refuse(operation, f"{source} to {shape}; only axes of one element may come or go")
    left = iter(kept)
    return reshaped(
        conversion.known(operation.operands[0]), shape, [next(left) if size != 1 else None for size in shape], operation
    )


def _named(conversion: Conversion, operation: Operation) -> Known:
    """Where axes of one element were taken out, the operation says which axis is which."""
    shape = operation.result.type.shape
    return reshaped(conversion.known(operation.operands[0]), shape, operation.attributes["axes"], operation)


def _check(conversion: Conversion, operation: Operation) -> None:
    for value in operation.results:
        if len(value.type.shape) > 2:
            raise refuse(operation, f"a tensor of {len(value.type.shape)} axes; tiles have two at most")


@lowers("tt.bitcast", note="of pointers to bool, which are bytes")
def lower_bitcast(conversion: Conversion, operation: Operation) -> Known:
    known = conversion.known(operation.operands[0])
    if not isinstance(known, Pointer) or known.element != "i1" or operation.result.type.element != "i8":
        raise refuse(operation, "bits of one type as another; the device converts numbers alone")
    return replace(known, element="i8")


@lowers("llvm.intr.assume", "gpu.barrier", "ttg.barrier", note="nothing: a program is one thread")
def lower_nothing(conversion: Conversion, operation: Operation) -> None:
    """Promises and barriers between threads."""
