"""Runs TTIR as it is written: every pointer is the number of an element in flat memory, every integer wraps as its type
does, every program comes after the other. Nothing is known of tiles, views or grids.

Floating point is computed by the golden arithmetic, with what ``docs/guides/triton.md`` says that each function is, so
that results are equal to the device's in every bit. An access outside of its array fails.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from sley.abi.types import ElementType
from sley.runtime.frameworks.from_triton.parser import read_ttir
from sley.runtime.frameworks.from_triton.ttir import Operation, Region, TritonFunction, TritonType, TritonValue
from sley.runtime.tile.interpreter import arithmetic

Array = np.ndarray[Any, Any]
GOLDEN = arithmetic()
FP32, BF16, INT32 = ElementType.FP32, ElementType.BF16, ElementType.INT32
LOG2E, LN2 = float(np.log2(np.e)), float(np.log(2))


class OracleError(Exception):
    """The kernel does what memory does not have, or the oracle does not know an operation."""


@dataclass
class Pointers:
    """Elements of an array by their numbers."""

    array: str
    at: Array


def bits(array: Array) -> Array:
    """Elements as the oracle has them: integers as int64, floats as bits."""
    if array.dtype == np.float32:
        return array.view(np.uint32)
    return array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array.astype(np.int64)


def fp32(value: float) -> Array:
    return np.asarray(np.float32(value)).view(np.uint32)


def wrapped(values: Array, type: TritonType) -> Array:
    """Integers as the type has them."""
    if type.element == "i1":
        return np.asarray(values) & 1
    limit = 1 << (type.bits - 1)
    if type.bits >= 64:
        return np.asarray(values, np.int64)
    return (np.asarray(values, np.int64) + limit) % (2 * limit) - limit


def apply(function: Callable[..., Array], *operands: Array) -> Array:
    """A golden function on arrays of any one shape, as rows."""
    shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
    flat = [np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(1, -1) for x in operands]
    return function(*flat).reshape(shape)


def binary(kind: str, a: Array, b: Array) -> Array:
    return apply(lambda x, y: GOLDEN.binary(kind, x, y, FP32), a, b)


def unary(kind: str, x: Array) -> Array:
    return apply(lambda y: GOLDEN.unary(kind, y), x)


def cast(x: Array, source: ElementType, to: ElementType) -> Array:
    return x if source is to else apply(lambda y: GOLDEN.cast(y, source, to), x)


def wide(x: Array, type: TritonType) -> Array:
    """fp32 of a float."""
    return cast(x, BF16, FP32) if type.element == "bf16" else x


def narrow(x: Array, type: TritonType) -> Array:
    return cast(x, FP32, BF16) if type.element == "bf16" else x


def negated(x: Array) -> Array:
    return binary("mul", x, fp32(-1.0))


def divide(a: Array, b: Array) -> Array:
    return binary("mul", a, unary("reciprocal", b))


FLOAT: dict[str, Callable[..., Array]] = {
    "arith.addf": lambda a, b: binary("add", a, b),
    "arith.subf": lambda a, b: binary("sub", a, b),
    "arith.mulf": lambda a, b: binary("mul", a, b),
    "arith.divf": divide,
    "tt.precise_divf": divide,
    "arith.maxnumf": lambda a, b: binary("max", a, b),
    "arith.maximumf": lambda a, b: binary("max", a, b),
    "arith.minnumf": lambda a, b: binary("min", a, b),
    "arith.minimumf": lambda a, b: binary("min", a, b),
    "arith.negf": negated,
    "math.exp": lambda x: unary("exp2", binary("mul", x, fp32(LOG2E))),
    "math.exp2": lambda x: unary("exp2", x),
    "math.log": lambda x: binary("mul", unary("log2", x), fp32(LN2)),
    "math.log2": lambda x: unary("log2", x),
    "math.sqrt": lambda x: unary("sqrt", x),
    "tt.precise_sqrt": lambda x: unary("sqrt", x),
    "math.rsqrt": lambda x: unary("rsqrt", x),
    "math.tanh": lambda x: unary("tanh", x),
    "math.erf": lambda x: binary(
        "sub", binary("mul", unary("normal_cdf", binary("mul", x, fp32(2**0.5))), fp32(2.0)), fp32(1.0)
    ),
    "math.floor": lambda x: unary("floor", x),
    "math.ceil": lambda x: negated(unary("floor", negated(x))),
    "math.absf": lambda x: binary("max", x, negated(x)),
    "math.fma": lambda a, b, c: binary("add", binary("mul", a, b), c),
    "tt.clampf": lambda x, low, high: binary("min", binary("max", x, low), high),
}
INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.minsi": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.divsi": lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)),
    "arith.remsi": lambda a, b: a - np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)) * b,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
}
COMPARED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def run(text: str, grid: tuple[int, ...], arguments: list[Any], lanes: int) -> list[Any]:
    """The arguments behind a run of the kernel; arrays are copies, of one axis or more, dense. ``lanes``: N of the
    chip whose order of additions is wanted."""
    function = read_ttir(text)
    after = [np.array(one) if isinstance(one, np.ndarray) else one for one in arguments]
    memories = {
        value.name: array.reshape(-1)
        for value, array in zip(function.arguments, after, strict=True)
        if isinstance(array, np.ndarray)
    }
    x, y, z = (*grid, 1, 1)[:3]
    for ids in product(range(z), range(y), range(x)):
        program = _Program(memories, ids[::-1], (x, y, z), lanes)
        for value, given in zip(function.arguments, after, strict=True):
            if isinstance(given, np.ndarray):
                program.values[value] = Pointers(value.name, np.asarray(0))
            else:
                program.values[value] = fp32(given) if value.type.is_float else np.asarray(given, np.int64)
        program.function(function)
    return after


class _Program:
    def __init__(
        self,
        memories: dict[str, Array],
        ids: tuple[int, ...],
        grid: tuple[int, int, int],
        lanes: int,
    ) -> None:
        self.memories, self.ids, self.grid, self.lanes = memories, ids, grid, lanes
        self.values: dict[TritonValue, Any] = {}

    def function(self, function: TritonFunction) -> None:
        region = function.body
        while True:
            self.region(region)
            end = region.operations[-1]
            if end.name not in ("cf.br", "cf.cond_br"):
                return
            number = 0 if end.name == "cf.br" or self.values[end.operands[0]] else 1
            region, handed = function.blocks[end.attributes["targets"][number]], end.attributes["handed"][number]
            self.values.update(zip(region.arguments, [self.values[value] for value in handed], strict=True))

    def region(self, region: Region) -> list[Any]:
        for op in region.operations:
            if op.name in ("cf.br", "cf.cond_br", "scf.yield", "tt.return", "tt.reduce.return", "tt.scan.return"):
                return [self.values[value] for value in op.operands]
            self.values.update(zip(op.results, self.operation(op), strict=True))
        return []

    def operation(self, op: Operation) -> list[Any]:
        given = [self.values[value] for value in op.operands]
        method = getattr(self, "_" + op.name.replace(".", "_"), None)
        if method is not None:
            made = method(op, *given)
            return made if isinstance(made, list) else [] if made is None else [made]
        type = op.results[0].type
        if op.name in FLOAT:
            wides = [wide(x, value.type) for x, value in zip(given, op.operands, strict=True)]
            return [narrow(FLOAT[op.name](*wides), type)]
        if op.name in INTEGER:
            return [wrapped(INTEGER[op.name](*given), type)]
        if op.name in ("arith.extsi", "arith.trunci", "arith.index_cast"):
            minus = op.name == "arith.extsi" and op.operands[0].type.element == "i1"
            return [wrapped(-given[0] if minus else given[0], type)]
        raise OracleError(f"{op.place}: no {op.name}")

    def _arith_constant(self, op: Operation) -> Any:
        type, value = op.result.type, op.attributes["value"]
        number = narrow(fp32(value), type) if type.is_float else np.asarray(value, np.int64)
        return np.broadcast_to(number, type.shape)

    def _tt_get_program_id(self, op: Operation) -> Any:
        return np.asarray(self.ids[op.attributes["axis"]])

    def _tt_get_num_programs(self, op: Operation) -> Any:
        return np.asarray(self.grid[op.attributes["axis"]])

    def _tt_make_range(self, op: Operation) -> Any:
        return np.arange(op.attributes["start"], op.attributes["end"])

    def _tt_splat(self, op: Operation, x: Any) -> Any:
        return self._shaped(x, lambda at: np.broadcast_to(at, op.result.type.shape))

    def _tt_broadcast(self, op: Operation, x: Any) -> Any:
        return self._shaped(x, lambda at: np.broadcast_to(at, op.result.type.shape))

    def _tt_expand_dims(self, op: Operation, x: Any) -> Any:
        return self._shaped(x, lambda at: np.expand_dims(at, op.attributes["axis"]))

    def _tt_trans(self, op: Operation, x: Any) -> Any:
        return self._shaped(x, lambda at: np.transpose(at, op.attributes["order"]))

    def _tt_reshape(self, op: Operation, x: Any) -> Any:
        return self._shaped(x, lambda at: np.reshape(at, op.result.type.shape))

    def _shaped(self, x: Any, function: Callable[[Array], Array]) -> Any:
        return Pointers(x.array, function(x.at)) if isinstance(x, Pointers) else function(x)

    def _tt_bitcast(self, op: Operation, pointers: Pointers) -> Any:
        return pointers

    def _tt_addptr(self, op: Operation, pointers: Pointers, offset: Array) -> Any:
        return Pointers(pointers.array, pointers.at + offset)

    def _tt_load(self, op: Operation, pointers: Pointers, mask: Any = None, other: Any = None) -> Any:
        type = op.result.type
        held = np.broadcast_to(True if mask is None else mask != 0, type.shape)
        made = np.zeros(type.shape, np.int64) if other is None else np.array(np.broadcast_to(other, type.shape))
        memory = self.memories[pointers.array]
        at = np.broadcast_to(pointers.at, type.shape)[held]
        self._inside(op, pointers.array, at)
        elements = bits(memory)[at]
        made = made.astype(elements.dtype)
        made[held] = elements
        return made

    def _tt_store(self, op: Operation, pointers: Pointers, value: Any, mask: Any = None) -> None:
        shape = op.operands[1].type.shape
        held = np.broadcast_to(True if mask is None else mask != 0, shape)
        memory = self.memories[pointers.array]
        at = np.broadcast_to(pointers.at, shape)[held]
        self._inside(op, pointers.array, at)
        view = memory.view({2: np.uint16, 4: np.uint32, 1: np.uint8}[memory.itemsize])
        view[at] = np.broadcast_to(value, shape)[held].astype(view.dtype)

    def _inside(self, op: Operation, name: str, at: Array) -> None:
        if at.size and (at.min() < 0 or at.max() >= self.memories[name].size):
            raise OracleError(f"{op.place}: {op.name} of {name} at {at.min()} to {at.max()}")

    def _tt_make_tensor_descriptor(self, op: Operation, base: Pointers, *rest: Array) -> Any:
        half = len(rest) // 2
        return base, [int(x) for x in rest[:half]], [int(x) for x in rest[half:]], op.result.type.shape

    def _block(self, descriptor: Any, indices: tuple[Array, ...]) -> tuple[Pointers, Array]:
        base, sizes, strides, block = descriptor
        at, held = np.zeros(block, np.int64) + base.at, np.ones(block, bool)
        for axis, (index, size, stride) in enumerate(zip(indices, sizes, strides, strict=True)):
            shape = [1] * len(block)
            shape[axis] = -1
            place = (np.arange(block[axis]) + int(index)).reshape(shape)
            at, held = at + place * stride, held & (place >= 0) & (place < size)
        return Pointers(base.array, at), held

    def _tt_descriptor_load(self, op: Operation, descriptor: Any, *indices: Array) -> Any:
        return self._tt_load(op, *self._block(descriptor, indices))

    def _tt_descriptor_store(self, op: Operation, descriptor: Any, *rest: Array) -> None:
        pointers, held = self._block(descriptor, rest[:-1])
        shape = held.shape
        memory = self.memories[pointers.array]
        self._inside(op, pointers.array, pointers.at[held])
        view = memory.view({2: np.uint16, 4: np.uint32, 1: np.uint8}[memory.itemsize])
        view[pointers.at[held]] = np.broadcast_to(rest[-1], shape)[held].astype(view.dtype)

    def _arith_shrui(self, op: Operation, x: Array, by: Array) -> Any:
        return wrapped((x & ((1 << op.result.type.bits) - 1)) >> by, op.result.type)

    def _arith_extui(self, op: Operation, x: Array) -> Any:
        return x & ((1 << op.operands[0].type.bits) - 1)

    def _arith_cmpi(self, op: Operation, a: Array, b: Array) -> Any:
        predicate = op.attributes["predicate"]
        if predicate[0] == "u":
            limit = (1 << op.operands[0].type.bits) - 1
            a, b = a & limit, b & limit
        return COMPARED[predicate[-2:]](a, b).astype(np.int64)

    def _arith_cmpf(self, op: Operation, a: Array, b: Array) -> Any:
        a, b = (wide(x, op.operands[0].type).view(np.float32) for x in (a, b))
        a, b = (np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(0), x) for x in (a, b))
        predicate, unordered = op.attributes["predicate"], np.isnan(a) | np.isnan(b)
        if predicate in ("ord", "uno"):
            return (unordered == (predicate == "uno")).astype(np.int64)
        held = COMPARED[predicate[1:]](a, b)
        return (held | unordered if predicate[0] == "u" else held & ~unordered).astype(np.int64)

    def _arith_select(self, op: Operation, condition: Array, x: Any, y: Any) -> Any:
        if isinstance(x, Pointers):
            return x if condition else y
        return np.where(condition != 0, x, y)

    def _arith_extf(self, op: Operation, x: Array) -> Any:
        return narrow(wide(x, op.operands[0].type), op.result.type)

    _arith_truncf = _tt_fp_to_fp = _arith_extf

    def _arith_sitofp(self, op: Operation, x: Array) -> Any:
        x = -x if op.operands[0].type.element == "i1" else x
        word = np.asarray(x, np.int64).astype(np.int32).view(np.uint32)
        return narrow(cast(word, INT32, FP32), op.result.type)

    def _arith_uitofp(self, op: Operation, x: Array) -> Any:
        x = x & ((1 << op.operands[0].type.bits) - 1)
        return narrow(cast(np.asarray(x, np.int64).astype(np.int32).view(np.uint32), INT32, FP32), op.result.type)

    def _arith_fptosi(self, op: Operation, x: Array) -> Any:
        x = wide(x, op.operands[0].type)
        negative = x.view(np.float32) < 0
        cut = np.where(negative, FLOAT["math.ceil"](x), FLOAT["math.floor"](x))
        return cast(cut, FP32, INT32).view(np.int32).astype(np.int64)

    def _tt_dot(self, op: Operation, a: Array, b: Array, sums: Array) -> Any:
        if op.result.type.is_integer:
            return wrapped(a @ b + sums, op.result.type)
        return GOLDEN.dot(*(np.ascontiguousarray(x) for x in (a, b, sums)))

    def _tt_reduce(self, op: Operation, *given: Array) -> Any:
        axis, type = op.attributes["axis"], op.operands[0].type
        names = [one.name for one in op.regions[0].operations]
        if len(given) == 2:
            return self._place_of(op, given[0], axis, largest="gt" in str(self._predicates(op)))
        if type.is_integer:
            functions = {"arith.addi": np.sum, "arith.maxsi": np.max, "arith.minsi": np.min}
            functions |= {"arith.ori": np.max, "arith.andi": np.min}
            return wrapped(functions[names[0]](given[0], axis), type)
        kind = {"arith.addf": "sum"}.get(names[0], "max" if "max" in names[0] else "min")
        return narrow(self._reduced(kind, wide(given[0], type), axis), type)

    def _predicates(self, op: Operation) -> list[str]:
        return [one.attributes["predicate"] for one in op.regions[0].operations if "predicate" in one.attributes][2:]

    def _reduced(self, kind: str, x: Array, axis: int) -> Array:
        """The last axis is along lanes; all others are one."""
        last = axis == x.ndim - 1
        flat = np.ascontiguousarray(x.reshape(-1, x.shape[-1]) if last else x)
        made = GOLDEN.reduce(kind, flat, 1 if last else axis, FP32, self.lanes)
        return made.reshape(x.shape[:axis] + x.shape[axis + 1 :])

    def _place_of(self, op: Operation, x: Array, axis: int, largest: bool) -> list[Any]:
        type = op.operands[0].type
        values = x if type.is_integer else wide(x, type).view(np.float32)
        number = (np.argmax if largest else np.argmin)(values, axis)
        return [np.take_along_axis(x, np.expand_dims(number, axis), axis).squeeze(axis), number]

    def _tt_scan(self, op: Operation, x: Array) -> Any:
        axis, type = op.attributes["axis"], op.operands[0].type
        sums = np.moveaxis(x if type.is_integer else wide(x, type), axis, 0).copy()
        distance = 1
        while distance < sums.shape[0]:
            before, sums = sums, sums.copy()
            if type.is_integer:
                sums[distance:] = wrapped(before[distance:] + before[:-distance], type)
            else:
                sums[distance:] = binary("add", before[distance:], before[:-distance])
            distance *= 2
        return np.moveaxis(sums if type.is_integer else narrow(sums, type), 0, axis)

    def _scf_for(self, op: Operation, lower: Array, upper: Array, step: Array, *carried: Any) -> Any:
        body, values = op.regions[0], list(carried)
        for number in range(int(lower), int(upper), int(step)):
            self.values.update(zip(body.arguments, [np.asarray(number), *values], strict=True))
            values = self.region(body)
        return values

    def _scf_if(self, op: Operation, condition: Array) -> Any:
        chosen = 0 if condition else 1
        return self.region(op.regions[chosen]) if chosen < len(op.regions) else []
