"""Which axes of a kernel's tensors are rows and columns of tiles.

Axes of one element are none: types lose them, and operations on shapes say which axis of a result is which one of the
operand. So a kernel that walks three axes, in blocks of one element along one of them, is one of two axes. Tensors that
still have three axes are refused where they are made. The two that are left may be exchanged: reductions of the last
axis, across lanes, are then reductions of rows, and what was loaded in rows is loaded in columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sley.runtime.frameworks.from_triton.ttir import Operation, Region, TritonFunction, TritonType, TritonValue

Shape = tuple[int, ...]
SAME = ("tt.reduce", "tt.scan")
"""Operations along an axis, which do nothing where that has one element."""


def arrange(function: TritonFunction, exchanged: bool = False) -> None:
    """Takes axes of one element out of all tensors, if some have more than two axes or they are to be exchanged.

    Descriptors have the axes that memory has, and products theirs, so kernels with one of these stay as they are."""
    values = list(_values(function))
    fixed = any(value.type.kind == "descriptor" for value in values) or any(
        operation.name == "tt.dot" for operation in function.walk()
    )
    if fixed or not (exchanged or any(len(value.type.shape) > 2 for value in values)):
        return
    for region in (function.body, *function.blocks.values()):
        _split_reductions(region)
    for operation in function.walk():
        _rewrite(operation, exchanged)
    for value in _values(function):
        value.type = replace(
            value.type, shape=tuple(value.type.shape[axis] for axis in kept(value.type.shape, exchanged))
        )


def kept(shape: Shape, exchanged: bool = False) -> list[int]:
    """Axes of more than one element, in the order of a tile's."""
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    return axes[::-1] if exchanged else axes


def _values(function: TritonFunction) -> Iterator[TritonValue]:
    seen: set[int] = set()
    regions = [function.body, *function.blocks.values()]
    regions += [region for operation in function.walk() for region in operation.regions]
    groups = [function.arguments, *(region.arguments for region in regions)]
    groups += [operation.results for operation in function.walk()]
    for value in (one for group in groups for one in group):
        if id(value) not in seen:
            seen.add(id(value))
            yield value


def _rewrite(operation: Operation, exchanged: bool) -> None:
    if operation.name in SAME:
        axes, axis = kept(operation.operands[0].type.shape, exchanged), operation.attributes["axis"]
        operation.attributes["axis"] = axes.index(axis) if axis in axes else None
        return
    if not operation.results:
        return
    source = operation.operands[0].type.shape if operation.operands else ()
    shape = operation.result.type.shape if len(operation.results) == 1 else ()
    places = _places(operation, source, shape)
    if places is not None:
        axes = kept(source, exchanged)
        made = [places[axis] for axis in kept(shape, exchanged)]
        operation.attributes["axes"] = [axes.index(axis) if axis in axes else None for axis in made]


def _places(operation: Operation, source: Shape, shape: Shape) -> list[int | None] | None:
    """Which axis of the operand each axis of the result is; None for operations that are none on shapes."""
    name = operation.name
    if name == "tt.splat":
        return [None] * len(shape)
    if name == "tt.expand_dims":
        new = operation.attributes["axis"]
        return [None if axis == new else axis - (axis > new) for axis in range(len(shape))]
    if name == "tt.broadcast":
        return [axis if source[axis] == shape[axis] else None for axis in range(len(shape))]
    if name == "tt.trans":
        return list(operation.attributes["order"])
    if name == "tt.reshape" and [s for s in source if s != 1] == [s for s in shape if s != 1]:
        left = iter(kept(source))
        return [next(left) if size != 1 else None for size in shape]
    return None


def _split_reductions(region: Region) -> None:
    """A reduction of the last axis of a tensor that was reshaped, so that this is several axes, is one of each."""
    made = {id(result): operation for operation in region.operations for result in operation.results}
    found: list[Operation] = []
    for operation in region.operations:
        for inner in operation.regions:
            if operation.name not in SAME:
                _split_reductions(inner)
        reshape = made.get(id(operation.operands[0])) if operation.name == "tt.reduce" else None
        if reshape is not None and reshape.name == "tt.reshape" and len(operation.operands) == 1:
            found += _of_each_axis(operation, reshape)
        else:
            found.append(operation)
    used = {id(operand) for operation in _walk(found) for operand in operation.operands}
    region.operations = [op for op in found if op.name != "tt.reshape" or id(op.result) in used]


def _walk(operations: list[Operation]) -> Iterator[Operation]:
    for operation in operations:
        yield operation
        for region in operation.regions:
            yield from region.walk()


def _of_each_axis(reduction: Operation, reshape: Operation) -> list[Operation]:
    source, flat = reshape.operands[0], reshape.result.type.shape
    first = len(flat) - 1
    if reduction.attributes["axis"] != first or source.type.shape[:first] != flat[:first]:
        return [reduction]
    steps: list[Operation] = []
    value = source
    for axis in reversed(range(first, len(source.type.shape))):
        type = TritonType(value.type.element, value.type.shape[:axis])
        to = reduction.result if axis == first else TritonValue(type, f"{reduction.result.name}.{axis}")
        steps.append(replace(reduction, operands=[value], results=[to], attributes={"axis": axis}))
        value = to
    return steps
