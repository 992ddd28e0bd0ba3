"""Operators that reduce along an axis, and use what they got: norms, softmax, sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from sley.abi.types import ElementType
from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.nn.folding import Axis, broadcast_shape, repeats, viewed
from sley.runtime.nn.mapping import FP32, Operand, Source, cast, inputs_of, on_device, region, result_array, source
from sley.runtime.tile import language as tile

ROWS, CHUNKS = (8, 32), (4, 64)
"""A tile along the axis that is reduced, at least and at most: in rows, and in chunks of N columns."""
INT32_ENDS = -(1 << 31), (1 << 31) - 1
IDENTITY = {"sum": 0.0, "max": -float("inf"), "min": float("inf")}
JOIN: dict[str, Callable[[Any, Any], Any]] = {"sum": lambda x, y: x + y, "max": tile.maximum, "min": tile.minimum}


@dataclass(frozen=True)
class Statistic:
    """A reduction: ``kind`` sum, max or min, of what ``function`` makes of the operands and of the statistics before
    it; ``behind``: of the result and the statistics before it, if it is not the result itself."""

    kind: str
    function: Callable[..., Any]
    behind: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Reducing:
    """An operator along an axis. ``statistics``: one after the other. ``result``: of the operands and all statistics;
    without it the results are the last statistics, one for each array of results. ``numbers``: constants that each of
    the functions gets behind all else."""

    name: str
    statistics: tuple[Statistic, ...]
    result: Callable[..., Any] | None = None


@tile.kernel
def reducing(
    outs: Any,
    inputs: Any,
    operator: Any,
    sources: Any,
    numbers: Any,
    computed: Any,
    axis: int,
    size: int,
    rows: int,
    columns: int,
) -> None:
    """On arrays of four axes; ``axis`` 0 or 1 of the last two, of ``size`` elements, is reduced."""
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    along = (rows, columns)[axis]
    whole, rest = divmod(size, along) if size > along else (0, size)
    for outer in range(outs[0].shape[0]):
        lead = outer, tile.block_id(2)
        kept = (row, column)[1 - axis]
        reader = Reader((inputs, outs), sources, computed, lead, kept, axis, (rows, columns))
        tail = reader(whole * along, rest) if rest else None
        known: Any = ()
        for statistic in operator.statistics:
            total = None
            if whole:
                total = passed(reader, statistic, known, numbers, whole, along)
            if tail is not None:
                end = reduced(statistic.function(*tail, *known, *numbers), statistic.kind, axis)
                total = end if total is None else JOIN[statistic.kind](total, end)
            known = (*known, total if statistic.behind is None else statistic.behind(total, *known, *numbers))
        if operator.result is None:
            for out, last in zip(outs, known[-len(outs) :], strict=True):
                place = (*lead, *(kept if number != axis else 0 for number in (0, 1)))
                tile.store(out, place, last.to(out.dtype))
        else:
            if whole:
                for at in range(0, whole * along, along):
                    written(reader, outs, operator.result(*reader(at, along), *known, *numbers), at)
            if tail is not None:
                written(reader, outs, operator.result(*tail, *known, *numbers), whole * along)


@dataclass(frozen=True)
class Reader:
    """Loads operands at a place along the axis that is reduced."""

    arrays: Any
    sources: tuple[Source, ...]
    computed: ElementType
    lead: Any
    kept: Any
    axis: int
    shape: tuple[int, int]

    def at(self, along: Any, count: int) -> tuple[Any, tuple[int, int]]:
        """Place and shape of tiles."""
        place = (along, self.kept) if self.axis == 0 else (self.kept, along)
        shape = (count, self.shape[1]) if self.axis == 0 else (self.shape[0], count)
        return (*self.lead, *place), shape

    def number(self, value: float) -> float:
        """A number as the type that is computed in, infinities as its ends."""
        if self.computed is ElementType.FP32:
            return value
        return int(min(max(value, INT32_ENDS[0]), INT32_ENDS[1]))

    def __call__(self, along: Any, count: int) -> list[Any]:
        place, shape = self.at(along, count)
        return [source(value, self.arrays, place, shape, self.computed) for value in self.sources]


@tile.function
def passed(reader: Any, statistic: Any, known: Any, numbers: Any, whole: int, along: int) -> Any:
    """A statistic over whole tiles: element by element from tile to tile, then along the axis."""
    shape = reader.at(0, along)[1]
    total = tile.full(shape, reader.number(IDENTITY[statistic.kind]), reader.computed)
    for at in range(0, whole * along, along):
        total = JOIN[statistic.kind](total, statistic.function(*reader(at, along), *known, *numbers))
    return reduced(total, statistic.kind, reader.axis)


def tile_along(size: int, axis: int, lanes: int) -> int:
    """Elements of a tile along an axis of so many that is reduced, which the order of additions depends on: all of them
    if these are at most 32 rows or 64 N columns, N the lanes of the chip; else the largest divisor up to there, from 8
    rows or 4 N columns on; or just 32 and 64 N, and a smaller tile at the end."""
    least, most = ROWS if axis == 0 else (CHUNKS[0] * lanes, CHUNKS[1] * lanes)
    if size <= most:
        return size
    return next((n for n in range(most, least - 1, -1) if size % n == 0), most)


def reduced(value: Any, kind: str, axis: int) -> Any:
    return {"sum": value.sum, "max": value.max, "min": value.min}[kind](axis)


def written(reader: Any, outs: Any, results: Any, along: Any) -> None:
    results = results if isinstance(results, tuple) else (results,)
    for out, result in zip(outs, results, strict=True):
        place, shape = reader.at(along, result.shape[reader.axis])
        at, _ = region(out, place, shape)
        tile.store(out, at, result.to(out.dtype))


class Apart(BadRequest):
    """Axes that are reduced are not one in memory."""


def run_reducing(
    operator: Reducing,
    operands: Sequence[Operand],
    axes: Sequence[int],
    dtypes: Sequence[np.dtype[Any] | None],
    outs: Sequence[Buffer | None],
    *,
    numbers: tuple[float, ...] = (),
    computed: ElementType = ElementType.FP32,
    keepdims: bool = True,
    stream: Stream | None = None,
) -> tuple[Buffer, ...]:
    """Runs an operator along ``axes`` of the shape that operands have together, on all cores.

    Results have that shape, or, if they are statistics, one element along these axes, or not these axes at all.
    ``dtypes``: of results, by default the first operand's. Raises ``ShapeMismatch``, ``UnsupportedType``,
    ``BadRequest``, ``Apart`` of axes that are not one in memory.
    """
    device, given = on_device(operator.name, operands, outs, stream)
    given = [
        cast(operand, operand.dtype, stream=stream) if isinstance(operand, Buffer) and repeats(operand) else operand
        for operand in given
    ]
    arrays = [operand for operand in given if isinstance(operand, Buffer)]
    shape = broadcast_shape(operator.name, [array.shape for array in arrays])
    if 0 in shape:
        raise ShapeMismatch(f"{operator.name} of shape {shape}; each axis has 1 element or more")
    chosen = normal_axes(operator.name, axes, len(shape))
    full = operator.result is not None
    behind = (
        shape
        if full
        else tuple(1 if axis in chosen else size for axis, size in enumerate(shape) if keepdims or axis not in chosen)
    )
    results = [
        result_array(device, operator.name, behind, arrays[0].dtype if dtype is None else dtype, out)
        for dtype, out in zip(dtypes, outs, strict=True)
    ]
    inputs, sources = inputs_of(operator.name, given, results)
    views = results if full or keepdims else [with_axes(result, chosen, len(shape)) for result in results]
    plan = _arranged([*inputs, *views], shape, chosen, operator.name)
    _launch(stream or device.stream, operator, (inputs, views), (tuple(sources), numbers, computed), plan)
    return tuple(results)


def normal_axes(operator: str, axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes counted from the first one, each once. Raises ``ShapeMismatch``."""
    if not all(isinstance(axis, int | np.integer) for axis in axes):
        raise BadRequest(f"axis {tuple(axes)!r} of {operator}; axes are numbers")
    if any(not -ndim <= axis < ndim for axis in axes):
        raise ShapeMismatch(f"axis {tuple(axes)} of {operator}; the array has {ndim} axes, {-ndim} to {ndim - 1}")
    found = tuple(axis % ndim for axis in axes)
    if len(set(found)) < len(found):
        raise ShapeMismatch(f"axes {tuple(axes)} of {operator}; each comes once")
    return found


def with_axes(array: Buffer, axes: Sequence[int], ndim: int) -> Buffer:
    """A view with an axis of one element at each of these places."""
    return array[tuple(None if axis in axes else slice(None) for axis in range(ndim))]


@dataclass(frozen=True)
class Arranged:
    """Axes in the order in which the kernel has them: outer ones for the host, then four. ``axis``: the reduced one."""

    outer: list[Axis]
    inner: list[Axis]
    axis: int


def _arranged(arrays: Sequence[Buffer], shape: tuple[int, ...], chosen: Sequence[int], operator: str) -> Arranged:
    groups: dict[bool, list[Axis]] = {True: [], False: []}
    for number in range(len(shape)):
        if shape[number] == 1:
            continue
        place = number - len(shape)
        strides = [
            array.strides[place] if len(array.shape) >= -place and array.shape[place] > 1 else 0 for array in arrays
        ]
        groups[number in chosen].append(Axis(shape[number], tuple(strides)))
    for kind, axes in groups.items():
        axes.sort(key=lambda axis: -max(axis.strides))
        joined: list[Axis] = []
        for axis in axes:
            if joined and joined[-1].inside(axis):
                axis = Axis(joined.pop().size * axis.size, axis.strides)
            joined.append(axis)
        groups[kind] = joined
    none = Axis(1, (0,) * len(arrays))
    if len(groups[True]) > 1:
        raise Apart(f"{operator} along axes that are not one in memory; reduce one after the other, or a copy")
    along, kept = (groups[True] or [none])[0], groups[False] or [none]
    sizes = [array.dtype.itemsize for array in arrays]
    rows, columns = _contiguous(along, sizes), _contiguous(kept[-1], sizes)
    if rows and (along.size > 1 or not columns) and (not columns or max(along.strides) <= max(kept[-1].strides)):
        inner, number = [*kept, along], 1
    elif columns:
        inner, number = [*kept[:-1], along, kept[-1]], 0
    else:  # elements that do not lie side by side are runs by themselves
        inner, number = [*kept, along, none], 0
    inner = [none] * (4 - len(inner)) + inner
    return Arranged(inner[:-4], inner[-4:], number)


def _contiguous(axis: Axis, sizes: Sequence[int]) -> bool:
    return all(stride in (0, size) for stride, size in zip(axis.strides, sizes, strict=True))


def _launch(
    stream: Stream,
    operator: Reducing,
    arrays: tuple[Sequence[Buffer], Sequence[Buffer]],
    work: tuple[tuple[Source, ...], tuple[float, ...], ElementType],
    plan: Arranged,
) -> None:
    config, every = stream.device.config, [*arrays[0], *arrays[1]]
    size, kept = plan.inner[2 + plan.axis].size, plan.inner[3 - plan.axis].size
    along = tile_along(size, plan.axis, config.array)
    narrow = sum(
        array.dtype not in (FP32, np.dtype(np.int32)) and plan.inner[3 - plan.axis].strides[number] > 0
        for number, array in enumerate(every)
    )
    places = config.scratchpad_rows // (2 * max(narrow, 1))
    rooms = [min(places, config.accumulator_rows // share) for share in SHARES]
    if plan.axis == 1:
        chunks = -(-along // config.array)
        rows, columns = tile.choice(*(min(max(room // chunks, 1), kept) for room in rooms)), along
    else:
        rows, columns = along, tile.choice(*(min(max(room // along, 1) * config.array, kept) for room in rooms))

    def grid(rows: int, columns: int) -> tuple[int, int, int]:
        blocks = -(-kept // (rows if plan.axis == 1 else columns))
        return (1, blocks, plan.inner[1].size) if plan.axis == 1 else (blocks, 1, plan.inner[1].size)

    for index in product(*(range(axis.size) for axis in plan.outer)):
        views = []
        for number, array in enumerate(every):
            start = sum(i * axis.strides[number] for i, axis in zip(index, plan.outer, strict=True))
            views.append(viewed(array, number, plan.inner, start))
        count = len(arrays[0])
        reducing[grid](
            tuple(views[count:]), tuple(views[:count]), operator, *work, plan.axis, size, rows, columns, stream=stream
        )


SHARES = (1, 2, 3, 4, 6, 8, 12)
"""Of the accumulators, what a tile takes at most, from which the compiler chooses: 1 / this."""
