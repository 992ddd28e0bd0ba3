"""Where registers lie in memory: arrays with one place for every index in their names.

``weight_2_5`` lies ``pitch`` places behind ``weight_1_5``, and so does ``activation_2_5`` behind ``activation_1_5``,
even if one of the arrays has no column 0. So a loop over elements finds the operands of all of them at one distance
from what it computes, also where logic differs at the edges.

Where it helps, the pitch leaves one place free between rows. There, and in the row before the first, a register settles
that is the neighbour of an element at the edge for several loops.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd

from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.optimise.machine_types import ALIGN_ARRAYS, SIZES, c_type

_DIGITS = re.compile(r"\d+")
SPARSE = 4 / 3
"""An array may have so many times more places than registers. Others, such as triangles, are packed row by row."""

MIN_VOTES = 2
"""Loops that must find a register at the edge of an array for it to settle there."""


def place_registers(elements: Elements, candidates: Sequence[tuple[int, ...]]) -> None:
    """Makes ``elements.arrays`` and ``elements.stored`` for the candidates, next values of one kind each."""
    patterns = {_pattern(elements, sink) for sinks in candidates for sink in sinks}
    trial = _Lattice(elements, patterns, None)
    lattice = _Lattice(elements, patterns, trial.settle_edges(candidates))
    lattice.separate(candidates)
    lattice.settle_edges(candidates)
    lattice.finish(candidates)


def _pattern(elements: Elements, sink: int) -> tuple[str, int]:
    register = elements.register(sink)
    return _DIGITS.sub("#", register.name), register.width


class _Lattice:
    def __init__(self, elements: Elements, patterns: set[tuple[str, int]], spaced: set[str] | None) -> None:
        """Arrays for all registers of these patterns of names.

        ``spaced``: homes whose arrays have free places between rows; all if None.
        """
        self._elements = elements
        self._place: dict[int, tuple[int, int]] = {}
        """For each register (its value) its array and index, which may be negative."""
        self._taken: list[dict[int, int]] = []
        """For each array the register at each index."""
        self._homes: list[str] = []
        self._pitch: list[int] = []
        found: dict[tuple[str, int], dict[int, tuple[int, ...]]] = defaultdict(dict)
        for register in elements.netlist.registers:
            key = _DIGITS.sub("#", register.name), register.width
            if key in patterns:
                found[key][register.value] = (*map(int, _DIGITS.findall(register.name)), register.low)
        grids = [(_home(key[0]), grid) for key, numbers in found.items() for grid in _grids(numbers)]
        columns: dict[str, int] = defaultdict(int)  # the same for all grids of alike instances
        for home, grid in grids:
            columns[home] = max(columns[home], _columns(grid))
        for home, grid in grids:
            pitch = columns[home] + (spaced is None or home in spaced)
            self._homes.append(home)
            self._pitch.append(pitch)
            self._taken.append({})
            indices = _indices(grid, pitch) or _indices(grid, _columns(grid)) or _side_by_side(grid)
            for value, index in indices.items():
                self._put(value, len(self._taken) - 1, index)

    def _put(self, value: int, array: int, index: int) -> None:
        if value in self._place:
            old, place = self._place[value]
            del self._taken[old][place]
        self._place[value] = array, index
        self._taken[array][index] = value

    def separate(self, candidates: Sequence[tuple[int, ...]]) -> None:
        """Gives every loop an array of its own where no loop computes neighbours (but every fourth place, say)."""
        loops: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for sinks in candidates:
            ordered = sorted(map(self._register, sinks), key=lambda register: self._place[register])
            array = self._place[ordered[0]][0]
            if all(self._place[register][0] == array for register in ordered):
                loops[array].append(tuple(ordered))
        for array, found in loops.items():
            if any(self._neighbours(registers) for registers in found):
                continue
            for registers in found:
                self._homes.append(self._homes[array])
                self._pitch.append(0)
                self._taken.append({})
                for index, register in enumerate(registers):
                    self._put(register, len(self._taken) - 1, index)

    def _neighbours(self, registers: Sequence[int]) -> bool:
        gaps = [self._place[after][1] - self._place[before][1] for before, after in pairwise(registers)]
        return gaps.count(1) >= len(gaps) / 2

    def _register(self, sink: int) -> int:
        return self._elements.register(sink).value

    def settle_edges(self, candidates: Sequence[tuple[int, ...]]) -> set[str]:
        """Moves registers to free places where several loops would read them as neighbours.

        Returns the homes of the arrays that they move to.
        """
        homes = set()
        votes: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
        for sinks in candidates:
            for column in self._columns(sinks):
                for value, place in self._misplaced(sinks, column):
                    votes[value][place] += 1
        for value, places in sorted(votes.items()):
            (array, index), count = places.most_common(1)[0]
            if count >= MIN_VOTES and index not in self._taken[array]:
                self._put(value, array, index)
                homes.add(self._homes[array])
        return homes

    def _columns(self, sinks: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Operands of all elements, however deep, that are different registers."""
        elements = self._elements
        seen: set[tuple[int, ...]] = set()
        stack = [sinks]
        while stack:
            column = stack.pop()
            if column in seen or len(set(column)) < len(column):
                continue
            seen.add(column)
            if all(value in self._place for value in column):
                yield column
            elif not any(elements.source(value) for value in column):
                stack += zip(*(elements.operands[value] for value in column), strict=True)

    def _misplaced(self, sinks: tuple[int, ...], column: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, int]]]:
        """Registers of a column that lie elsewhere than most, and the free places that would fit."""
        elements = self._elements
        own = [self._place[self._register(sink)][1] for sink in sinks]
        places = [self._place[value] for value in column]
        distances = Counter((array, index - at) for (array, index), at in zip(places, own, strict=True))
        (array, distance), count = distances.most_common(1)[0]
        taken, pitch = self._taken[array], self._pitch[array]
        if count < len(column) * 3 / 4:
            return
        low, high = min(taken), max(taken)
        kinds = {c_type(elements.width[value]) for value in (*column, next(iter(taken.values())))}
        for value, (other, _), at in zip(column, places, own, strict=True):
            place = at + distance
            if other != array and place not in taken and low - pitch <= place <= high + pitch and len(kinds) == 1:
                yield value, (array, place)

    def finish(self, candidates: Sequence[tuple[int, ...]]) -> None:
        """Indices from 0 on, or a little more, so that the array's largest loop begins with a cache line.

        Arrays that registers moved out of lose the places at their ends.
        """
        elements = self._elements
        first_of: dict[int, int] = {}
        for sinks in sorted(candidates, key=len):
            places = [self._place[self._register(sink)] for sink in sinks]
            array, _ = Counter(array for array, _ in places).most_common(1)[0]
            first_of[array] = min(index for other, index in places if other == array)
        for number, taken in enumerate(self._taken):
            if not taken:
                continue
            low = min(taken)
            line = ALIGN_ARRAYS // SIZES[c_type(elements.width[taken[low]])]
            low -= (low - first_of.get(number, low)) % line
            array_of = [-1] * (max(taken) + 1 - low)
            for index, value in taken.items():
                array_of[index - low] = value
                elements.stored[value] = len(elements.arrays), index - low
            elements.arrays.append(tuple(array_of))


def _home(name: str) -> str:
    return name.rpartition(".")[0]


Grid = dict[int, tuple[int, int]]
"""Registers and their rows and columns, from 0 on."""


def _grids(numbers: dict[int, tuple[int, ...]]) -> list[Grid]:
    """Registers by the numbers in their names.

    The two numbers with the widest range are row and column. Each set of the others has a grid of its own.
    """
    dimensions = list(zip(*numbers.values(), strict=True))
    ranges = [len(set(dimension)) for dimension in dimensions]
    widest = sorted(sorted(range(len(ranges)), key=lambda number: (-ranges[number], -number))[:2])
    lows = [min(dimensions[number]) for number in widest]
    steps = [gcd(*(n - low for n in dimensions[number])) or 1 for number, low in zip(widest, lows, strict=True)]
    found: dict[tuple[int, ...], Grid] = defaultdict(dict)
    for value, own in numbers.items():
        others = tuple(number for index, number in enumerate(own) if index not in widest)
        place = [(own[number] - low) // step for number, low, step in zip(widest, lows, steps, strict=True)]
        row, column = place if len(place) == 2 else (0, place[0])
        found[others][value] = (row, column) if ranges[widest[-1]] > 1 else (0, row)
    return list(found.values())


def _columns(grid: Grid) -> int:
    """Columns of a grid with several rows; 0 if it has but one."""
    return 1 + max(column for _, column in grid.values()) if any(row for row, _ in grid.values()) else 0


def _indices(grid: Grid, pitch: int) -> dict[int, int]:
    """Places in memory; nothing if they would be too far apart, or two at one place."""
    indices = {value: row * pitch + column for value, (row, column) in grid.items()}
    low, high = min(indices.values()), max(indices.values())
    return {} if len(set(indices.values())) < len(grid) or high - low >= SPARSE * len(grid) else indices


def _side_by_side(grid: Grid) -> dict[int, int]:
    return {value: index for index, value in enumerate(sorted(grid, key=lambda value: (grid[value], value)))}
