"""Reductions and scans: along lanes or rows, in the order of the tile compiler."""

from __future__ import annotations

from sley.runtime.frameworks.from_triton.conversion import FP32, INT32, Conversion, lowers, narrow
from sley.runtime.frameworks.from_triton.forms import Form
from sley.runtime.frameworks.from_triton.refusal import refuse
from sley.runtime.frameworks.from_triton.ttir import Operation, Region, TritonValue
from sley.runtime.frameworks.from_triton.values import Data, Known
from sley.runtime.tile.language import broadcast_to, cumsum
from sley.runtime.tile.library import argmax, argmin
from sley.runtime.tile.trace import Tile

KINDS = {
    "arith.addf": "sum",
    "arith.addi": "sum",
    "arith.maxnumf": "max",
    "arith.maximumf": "max",
    "arith.maxsi": "max",
    "arith.minnumf": "min",
    "arith.minimumf": "min",
    "arith.minsi": "min",
}
"""What joins two elements, and the reduction that it makes."""
FLAGS = {"arith.ori": "max", "arith.andi": "min"}
"""The same of conditions."""
FIRST_OF = {"arith.cmpf": ("ogt", "olt"), "arith.cmpi": ("sgt", "slt")}


@lowers("tt.reduce", note="sum, max, min, any, all; argmax and argmin, of the first NaN if there is one")
def lower_reduce(conversion: Conversion, operation: Operation) -> list[Known]:
    if operation.attributes["axis"] is None:
        return [conversion.known(value) for value in operation.operands]
    if len(operation.operands) == 2:
        return _place_of(conversion, operation)
    kind = _kind(operation)
    source, axis = operation.operands[0], operation.attributes["axis"]
    data, tile, along = _whole(conversion, operation, source, axis)
    type = operation.results[0].type
    reduced = tile.reduced(kind, along)
    made = reduced.to(narrow(type)) if type.is_float else reduced
    return [_joined(conversion, operation, data, made, axis)]


def _kind(operation: Operation) -> str:
    body = operation.regions[0].operations
    name = body[0].name
    simple = len(body) == 2 and set(body[0].operands) == set(operation.regions[0].arguments)
    kinds = KINDS | (FLAGS if operation.operands[0].type.element == "i1" else {})
    if not simple or len(operation.operands) != 1 or name not in kinds:
        raise refuse(operation, f"a reduction by {name}; there are sum, max, min, argmax and argmin")
    return kinds[name]


def _whole(conversion: Conversion, operation: Operation, value: TritonValue, axis: int) -> tuple[Data, Tile, int]:
    """An operand with all its elements, and the axis of the tile."""
    type = value.type
    if type.is_integer and type.bits > 32:
        raise refuse(operation, f"elements of {type.element}; the device computes in int32")
    data = conversion.data(conversion.known(value), type).turned(False)
    if any(test.coords[axis] for test in data.valid):
        raise refuse(operation, "elements that % wrapped around would be reduced; mask them")
    tile = conversion.tile(data, type)
    return data, broadcast_to(tile, conversion.whole(type)), 1 if len(type.shape) == 1 else axis


def _joined(conversion: Conversion, operation: Operation, data: Data, tile: Tile, axis: int) -> Data:
    """What is left, without the axis."""
    kept = [other for other in range(len(data.type.shape)) if other != axis]
    type = operation.results[0].type.of(operation.results[0].type.element)
    valid = tuple(test.shaped(type.shape, kept) for test in data.valid)
    return Data(tile, type, len(kept) == 1 and axis == 1, valid)


def _place_of(conversion: Conversion, operation: Operation) -> list[Known]:
    """The largest or smallest with its number: Triton's argmax and argmin, of the first of equal ones."""
    values, numbers = operation.operands
    axis = operation.attributes["axis"]
    known = conversion.known(numbers)
    coords = tuple(int(other == axis) for other in range(len(numbers.type.shape)))
    counted = isinstance(known, Form) and known.data is None and known.constant is None and known.coords == coords
    kind = _first_kind(operation.regions[0])
    if kind is None or not counted or not isinstance(known, Form) or known.loops or known.base != 0:
        raise refuse(operation, "a reduction of two tensors that is no argmax or argmin of numbers from 0 on")
    data, tile, along = _whole(conversion, operation, values, axis)
    type = values.type
    reduced = tile.reduced(kind, along)
    found = (argmax if kind == "max" else argmin)(tile, along)
    first = _joined(conversion, operation, data, reduced.to(narrow(type)), axis)
    second = Data(found, operation.results[1].type, first.column, first.valid)
    return [first, second]


def _first_kind(region: Region) -> str | None:
    """``max`` or ``min`` if the region takes the first of the largest or smallest."""
    names = [operation.name for operation in region.operations]
    for compare, (larger, smaller) in FIRST_OF.items():
        if names != [
            compare,
            "arith.cmpi",
            "arith.andi",
            compare,
            "arith.ori",
            *["arith.select"] * 2,
            "tt.reduce.return",
        ]:
            continue
        equal, before, both, beyond, either, value, place, end = region.operations
        a, i, b, j = region.arguments
        right = (
            equal.operands == beyond.operands == [a, b]
            and before.operands == [i, j]
            and equal.attributes["predicate"] in ("oeq", "eq")
            and before.attributes["predicate"] == "slt"
            and set(both.operands) == {equal.result, before.result}
            and set(either.operands) == {beyond.result, both.result}
            and value.operands == [either.result, a, b]
            and place.operands == [either.result, i, j]
            and end.operands == [value.result, place.result]
        )
        predicate = beyond.attributes["predicate"]
        if right and predicate in (larger, smaller):
            return "max" if predicate == larger else "min"
    return None


@lowers("tt.scan", note="sums up to each element, from the first on")
def lower_scan(conversion: Conversion, operation: Operation) -> list[Known]:
    if operation.attributes["axis"] is None:
        return [conversion.known(value) for value in operation.operands]
    if operation.attributes.get("reverse") or _kind(operation) != "sum" or len(operation.operands) != 1:
        raise refuse(operation, "a scan; there are sums up to each element, from the first on")
    value, axis = operation.operands[0], operation.attributes["axis"]
    data, tile, along = _whole(conversion, operation, value, axis)
    type = operation.results[0].type
    sums = cumsum(tile, along).to(narrow(type))
    assert sums.dtype in (FP32, INT32) or type.element == "bf16"
    return [Data(sums, type, False, data.valid)]
