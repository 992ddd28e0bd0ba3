"""Where intermediate arrays of a graph are in memory: each from its first launch to its last one, then others there.

Launches of a graph run in their order, each behind the one before, so memory is free for the launch behind an array's
last one. An element-wise launch may write its result over an operand that nobody reads later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.device import Device
from sley.runtime.device.graph import Graph, Launch
from sley.runtime.nn.mapping import elementwise

ALIGNMENT = 64
"""Bytes that arrays begin at multiples of, as those of the heap do."""
IN_PLACE = elementwise.name
"""Programs that read a tile of each operand before they write the same tile of the result, and no other."""


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of arrays on the device: ``weights``: constants and what packed weights are; ``ends``: inputs and outputs;
    ``intermediates``: all arrays between, each at a place of its own; ``planned``: the memory that they share."""

    weights: int
    ends: int
    intermediates: int
    planned: int


@dataclass(frozen=True)
class Lifetime:
    """An array of so many bytes, in use from one launch of a graph to another, both included."""

    size: int
    first: int
    last: int


def plan_memory(graph: Graph, device: Device, fixed: Iterable[Buffer]) -> MemoryUse:
    """Puts the intermediate arrays of a captured graph into one array, which the graph keeps; the bits of results are
    the same. ``fixed``: arrays that stay where they are: inputs and outputs.

    Raises ``BadRequest`` if the graph has copies or fills, whose arrays have no order among launches.
    """
    if len(graph) != len(graph.launches):
        raise BadRequest(f"{graph!r} has packets besides launches; memory is planned of graphs of launches alone")
    ends = {id(_base(array)): _base(array) for array in fixed}
    bases = {id(_base(array)): _base(array) for launch in graph.launches for array in _arrays(launch)}
    moved = {key: base for key, base in bases.items() if key not in ends and not base.known.from_host}
    spans = _spans(graph.launches, moved)
    homes = _in_place(graph.launches, moved, spans)
    groups: dict[int, list[int]] = {}
    for key in moved:
        groups.setdefault(homes.get(key, key), []).append(key)
    lifetimes = [
        Lifetime(moved[home].nbytes, min(spans[k][0] for k in keys), max(spans[k][1] for k in keys))
        for home, keys in groups.items()
    ]
    places, total = placed(lifetimes)
    if moved:
        _move(graph, device.empty(total, np.uint8), dict(zip(groups, places, strict=True)), homes)
    weights = sum(base.nbytes for key, base in bases.items() if key not in moved and key not in ends)
    return MemoryUse(
        weights, sum(base.nbytes for base in ends.values()), sum(base.nbytes for base in moved.values()), total
    )


def placed(lifetimes: Sequence[Lifetime]) -> tuple[list[int], int]:
    """A place for each array, and the bytes of all: larger ones first, each at the lowest place that no array has that
    is in use at the same time."""
    places, ends = np.zeros(len(lifetimes), np.int64), np.zeros(len(lifetimes), np.int64)
    first, last = (np.array([getattr(one, name) for one in lifetimes]) for name in ("first", "last"))
    done: list[int] = []
    for number in sorted(range(len(lifetimes)), key=lambda n: (-lifetimes[n].size, lifetimes[n].first)):
        size = max(-(-lifetimes[number].size // ALIGNMENT), 1) * ALIGNMENT
        others = np.array(done, np.int64)
        others = others[(first[others] <= last[number]) & (last[others] >= first[number])]
        place = 0
        for other in others[np.argsort(places[others], kind="stable")]:
            if place + size <= places[other]:
                break
            place = max(place, int(ends[other]))
        places[number], ends[number] = place, place + size
        done.append(number)
    return [int(place) for place in places], int(ends.max(initial=0))


def _base(array: Buffer) -> Buffer:
    return array if array.base is None else array.base


def _arrays(launch: Launch) -> list[Buffer]:
    return [value for value in launch.values if isinstance(value, Buffer)]


def _spans(launches: Sequence[Launch], moved: dict[int, Buffer]) -> dict[int, tuple[int, int]]:
    """The first and the last launch of each array."""
    spans: dict[int, tuple[int, int]] = {}
    for number, launch in enumerate(launches):
        for array in _arrays(launch):
            key = id(_base(array))
            if key in moved:
                spans[key] = spans.get(key, (number, number))[0], number
    return spans


def _in_place(
    launches: Sequence[Launch], moved: dict[int, Buffer], spans: dict[int, tuple[int, int]]
) -> dict[int, int]:
    """Arrays that take the place of an operand, with the first array at that place."""
    homes: dict[int, int] = {}
    taken: set[int] = set()
    for number, launch in enumerate(launches):
        if launch.program.name != IN_PLACE:
            continue
        arrays = _arrays(launch)
        for result in arrays:
            key = id(_base(result))
            if key not in moved or spans[key][0] != number or sum(_base(a) is _base(result) for a in arrays) > 1:
                continue
            for operand in arrays:
                other = id(_base(operand))
                if other in moved and other not in taken and spans[other] == (spans[other][0], number):
                    alone = sum(_base(a) is _base(operand) for a in arrays) == 1
                    if other != key and spans[other][0] < number and alone and _same_place(operand, result):
                        homes[key] = homes.get(other, other)
                        taken.add(other)
                        break
    return homes


def _same_place(one: Buffer, other: Buffer) -> bool:
    """Whether two arrays have their elements at the same places of arrays of the same size."""
    offsets = [array.address - _base(array).address for array in (one, other)]
    kinds = [(array.shape, array.strides, array.dtype.itemsize, _base(array).nbytes) for array in (one, other)]
    return offsets[0] == offsets[1] and kinds[0] == kinds[1]


def _move(graph: Graph, home: Buffer, places: dict[int, int], homes: dict[int, int]) -> None:
    for number, launch in enumerate(graph.launches):
        values = list(launch.values)
        for spot, value in enumerate(values):
            if isinstance(value, Buffer):
                base = _base(value)
                key = homes.get(id(base), id(base))
                if key in places:
                    values[spot] = value.placed(home, places[key] + value.address - base.address)
        if any(new is not old for new, old in zip(values, launch.values, strict=True)):
            graph.update(number, values)
