"""Judges operators: each step of one, a function of tiles or a reduction, is done again by its definition.

The definition of a function of tiles is that function in golden arithmetic, on one tile as large as the arrays; that of
a reduction is written here, in the order that ``sley.runtime.nn.sums`` publishes.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.abi.types import ElementType
from sley.abi.vector.operations import JOIN, Reduction
from sley.runtime import Buffer, tile
from sley.runtime.device.types import element_type
from sley.runtime.nn import mapping
from sley.runtime.nn import reducing as reductions
from sley.runtime.tile.interpreter import interpret
from sley.runtime.tile.types import ArrayType
from sley.sim.golden.operations import identity
from sley.sim.golden.tile import GoldenTiles

Bits = NDArray[Any]
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32}
FP32, INT32 = ElementType.FP32, ElementType.INT32
FLOATS = (mapping.BF16, mapping.FP32)


@tile.kernel
def whole(outs: Any, inputs: Any, function: Any, numbers: Any, computed: Any) -> None:
    """``outs = function(...)`` of arrays in ``inputs``, and of numbers where ``numbers`` has one."""
    arrays = iter(inputs)
    operands = []
    for number in numbers:
        if number is None:
            array = next(arrays)
            operands.append(tile.load(array, (0, 0), array.shape).to(computed))
        else:
            operands.append(number)
    results = function(*operands)
    for out, result in zip(outs, results if isinstance(results, tuple) else (results,), strict=True):
        tile.store(out, (0, 0), tile.broadcast_to(result, out.shape).to(out.dtype))


@dataclass(frozen=True)
class Words:
    """Elements as bit patterns, rows and columns."""

    bits: Bits
    dtype: ElementType

    @classmethod
    def of(cls, array: NDArray[Any]) -> "Words":
        element = ElementType.INT8 if array.dtype == bool else element_type(array.dtype)
        assert element is not None
        return cls(np.ascontiguousarray(array).view(WORDS[array.itemsize]), element)

    @property
    def type(self) -> ArrayType:
        rows, columns = self.bits.shape
        return ArrayType(self.dtype, (rows, columns), (columns, 1))


def applied(
    function: Callable[..., Any],
    operands: Sequence[Words | float],
    shape: tuple[int, int],
    dtypes: Sequence[ElementType],
    computed: ElementType,
    lanes: int,
) -> list[Words]:
    """``function`` on one tile of this shape."""
    inputs = tuple(operand for operand in operands if isinstance(operand, Words))
    outs = tuple(Words(np.zeros(shape, WORDS[dtype.bits // 8]), dtype) for dtype in dtypes)
    numbers = tuple(None if isinstance(operand, Words) else operand for operand in operands)
    constants = {"function": function, "numbers": numbers, "computed": computed}
    made = whole.function(
        {"outs": tuple(w.type for w in outs), "inputs": tuple(w.type for w in inputs)}, constants, (1, 1, 1)
    )
    arrays = [*outs, *inputs]
    values = {value.name: words.bits for value, words in zip(made.arrays, arrays, strict=True)}
    interpret(made, values, lanes)
    return list(outs)


def reduced(x: Bits, kind: str, side_by_side: bool, computed: ElementType, lanes: int) -> Bits:
    """Of [rows, K] the reduction along K, [rows, 1], in the published order."""
    golden, axis = GoldenTiles(), int(side_by_side)
    size = x.shape[1]
    x = np.ascontiguousarray(x if side_by_side else x.T)
    along = reductions.tile_along(size, axis, lanes)
    tiles = np.split(x, range(along, size, along), axis)
    rest = [tiles.pop()] if size <= along or size % along else []
    totals = []
    if tiles:
        total = np.full(tiles[0].shape, identity(Reduction[kind.upper()], computed is FP32), np.uint32)
        for part in tiles:
            total = golden.binary(JOIN[Reduction[kind.upper()]].name.lower(), total, part, computed)
        totals.append(golden.reduce(kind, total, axis, computed, lanes))
    totals += [golden.reduce(kind, part, axis, computed, lanes) for part in rest]
    result = totals[0]
    for total in totals[1:]:
        result = golden.binary(JOIN[Reduction[kind.upper()]].name.lower(), result, total, computed)
    return result if side_by_side else result.T


@dataclass
class Steps:
    """What the operators that are called meanwhile do, step by step; ``names``: of the steps that were judged."""

    names: list[str] = field(default_factory=list)

    def mapped_many(self, run: Callable[..., Any], name: str, function: Any, *operands: Any, **more: Any) -> Any:
        arrays = [np.asarray(o.numpy() if isinstance(o, Buffer) else o) for o in operands]
        results = run(name, function, *operands, **more)
        shape = results[0].shape
        kinds = [result.dtype for result in results]
        wide = more.get("computed")
        known = wide if wide is not None else next((kind for kind in kinds if kind in FLOATS), INT32)
        computed = FP32 if known in FLOATS else INT32
        given: list[Words | float] = []
        for operand, array in zip(operands, arrays, strict=True):
            if isinstance(operand, int | float):
                given.append(float(operand) if computed is FP32 else operand)
            else:
                given.append(Words.of(np.broadcast_to(array, shape).reshape(1, -1)))
        lanes = results[0].device.config.array
        right = applied(function, given, (1, max(int(np.prod(shape)), 1)), _elements(kinds), computed, lanes)
        self._judge(name, results, [words.bits.reshape(shape) for words in right])
        return results

    def run_reducing(
        self, run: Callable[..., Any], operator: Any, operands: Any, axes: Any, dtypes: Any, outs: Any, **more: Any
    ) -> Any:
        values = [operand.numpy() if isinstance(operand, Buffer) else operand for operand in operands]
        results = run(operator, operands, axes, dtypes, outs, **more)
        buffers = [operand for operand in operands if isinstance(operand, Buffer)]
        shape = np.broadcast_shapes(*(buffer.shape for buffer in buffers))
        lanes, computed = results[0].device.config.array, more.get("computed", FP32)
        chosen = [axis % len(shape) for axis in axes]
        kept = [axis for axis in range(len(shape)) if axis not in chosen]
        behind = results
        if operator.result is None and not more.get("keepdims", True):
            index = tuple(None if axis in chosen else slice(None) for axis in range(len(shape)))
            behind = [result[index] for result in results]
        places = _Places([*buffers, *behind], shape, chosen, kept)
        order = [*kept, *places.order]
        size = int(np.prod([shape[axis] for axis in chosen]))
        rows = int(np.prod([shape[axis] for axis in kept]))

        def table(array: Any) -> Words:
            wide = np.broadcast_to(array, shape).transpose(order)
            return Words.of(wide.reshape(rows, size))

        given = [table(v) if isinstance(v, np.ndarray) else float(v) if computed is FP32 else v for v in values]
        numbers = more.get("numbers", ())
        known: list[Words] = []
        for statistic in operator.statistics:
            operand = [*given, *known, *numbers]
            (values_of,) = applied(statistic.function, operand, (rows, size), [computed], computed, lanes)
            total = Words(reduced(values_of.bits, statistic.kind, places.side_by_side, computed, lanes), computed)
            if statistic.behind is not None:
                (total,) = applied(statistic.behind, [total, *known, *numbers], (rows, 1), [computed], computed, lanes)
            known.append(Words(np.ascontiguousarray(total.bits), computed))
        kinds = _elements([result.dtype for result in results])
        if operator.result is not None:
            right = applied(operator.result, [*given, *known, *numbers], (rows, size), kinds, computed, lanes)
            back = np.argsort(order)
            bits = [w.bits.reshape([shape[axis] for axis in order]).transpose(back) for w in right]
        else:
            pairs = zip(known[-len(results) :], kinds, strict=True)
            right = [applied(_same, [last], (rows, 1), [kind], computed, lanes)[0] for last, kind in pairs]
            bits = [w.bits.reshape(result.shape) for w, result in zip(right, results, strict=True)]
        self._judge(operator.name, results, bits)
        return results

    def _judge(self, name: str, results: Sequence[Buffer], right: Sequence[Bits]) -> None:
        self.names.append(name)
        for result, bits in zip(results, right, strict=True):
            found = np.ascontiguousarray(result.numpy()).view(WORDS[result.dtype.itemsize]).reshape(result.shape)
            differ = np.argwhere(found != bits)
            assert not len(differ), (
                f"{name} {result!r} differs at {differ[:4].tolist()}: "
                f"{[hex(found[tuple(at)]) for at in differ[:4]]}, not {[hex(bits[tuple(at)]) for at in differ[:4]]}"
            )


@contextmanager
def judged_steps() -> Iterator[Steps]:
    """Meanwhile each step of an operator is compared, bit by bit, with its definition."""
    steps = Steps()
    spied: list[tuple[Any, str, Any]] = []
    for function, name in ((mapping.mapped_many, "mapped_many"), (reductions.run_reducing, "run_reducing")):
        judge = getattr(steps, name)

        def spy(*args: Any, _judge: Any = judge, _run: Any = function, **more: Any) -> Any:
            return _judge(_run, *args, **more)

        for path, module in list(sys.modules.items()):
            if path.startswith("sley.runtime.nn") and getattr(module, name, None) is function:
                spied.append((module, name, function))
                setattr(module, name, spy)
    try:
        yield steps
    finally:
        for module, name, function in spied:
            setattr(module, name, function)


class _Places:
    """How the axis that is reduced is in memory: ``order`` of its axes, and whether its elements are side by side."""

    def __init__(self, arrays: Sequence[Buffer], shape: Sequence[int], chosen: list[int], kept: list[int]) -> None:
        self.arrays, self.ndim = arrays, len(shape)
        self.order = sorted(chosen, key=lambda axis: -max(self._strides(axis)))
        along = [axis for axis in self.order if shape[axis] > 1]
        others = sorted((axis for axis in kept if shape[axis] > 1), key=lambda axis: max(self._strides(axis)))
        inner = self._strides(along[-1]) if along else [0]
        across = self._strides(others[0]) if others else [0]
        rows, columns = self._side_by_side(inner), self._side_by_side(across)
        self.side_by_side = rows and not (columns and (not along or max(inner) > max(across)))

    def _strides(self, axis: int) -> list[int]:
        place = axis - self.ndim
        return [a.strides[place] if len(a.shape) >= -place and a.shape[place] > 1 else 0 for a in self.arrays]

    def _side_by_side(self, strides: list[int]) -> bool:
        sizes = [array.dtype.itemsize for array in self.arrays]
        return all(stride in (0, size) for stride, size in zip(strides, sizes, strict=False))


def _elements(kinds: Sequence[np.dtype[Any]]) -> list[ElementType]:
    return [Words.of(np.zeros((1, 1), kind)).dtype for kind in kinds]


def _same(x: Any) -> Any:
    return x
