"""Shortens the wires of a placement, and leads them around where they are crowded."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import inf

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sley.fpga.delays import SOURCES, Floats
from sley.fpga.placement import Movable, Placement, Tile

REACH = 4
"""Columns and rows from where a cell's wires would be shortest in which a place is looked for."""
GAIN = 0.5
"""Tiles of wire that a move has to save at least."""
PASSES, LEAST = 10, 0.01
"""Passes at most, and which share of all that may move has to have moved for another."""
ROOM, CROWDED = 90.0, 5.0
"""Wires through a tile of which there is no need to be fewer, and how many times its length a wire costs more where
there are twice as many."""
SQUARE = 5
"""Columns and rows about a tile whose mean is what it counts as."""
CELLS, TREE = (3, 5, 10, 20, 30, 40, 50), (1.0, 1.15, 1.45, 1.89, 2.23, 2.54, 2.79)
"""A net of so many cells takes so many times half the way around the box about them, in wires: C. E. Cheng, "RISA:
accurate and efficient placement routability modeling", ICCAD 1994."""
Box = tuple[int, int, int, int]
"""First and last column, first and last row."""


@dataclass(frozen=True)
class Shortening:
    """Tiles of wire before and after, half the way around the box about each net; and the number of moves."""

    before: int
    after: int
    moves: int


def shorten(placement: Placement) -> Shortening:
    """Moves LUTs and flip-flops one by one to where their wires cost less; the same placement gives the same result.

    A wire costs its length, and more, the more crowded the tiles are through which it may lead: nextpnr's placers mind
    length alone, and its router takes ever longer where wires run out. A cell takes a free slot, or changes places with
    one that is alike, if that costs less for both together.
    """
    shortening = _Shortening(placement)
    before = shortening.length
    for _ in range(PASSES):
        if shortening.pass_over() < LEAST * len(placement.movables):
            break
    return Shortening(before, shortening.length, shortening.moves)


def crowding(placement: Placement) -> Floats:
    """Wires through each tile, column by column, before they are routed: each net's, spread over the box about it, and
    of that the mean of a square of tiles."""
    return _Shortening(placement).crowding()


class _Shortening:
    """Places and boxes are Python's integers here, not arrays: they are looked at one by one, which is faster so."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._x, self._y = placement.x.tolist(), placement.y.tolist()
        self._nets = list(_nets(placement))
        self._boxes = [self._box(cells) for cells in self._nets]
        joined = defaultdict(list)
        for net, cells in enumerate(self._nets):
            for cell in cells:
                joined[cell].append(net)
        self._joined = {movable: self._outside(movable, joined) for movable in placement.movables}
        self._tree = np.interp([len(cells) for cells in self._nets], CELLS, TREE)
        self._random = np.random.default_rng(1)
        self.moves = 0

    @property
    def length(self) -> int:
        """Of all nets."""
        west, east, north, south = np.array(self._boxes).T
        return int((east - west + south - north).sum())

    def crowding(self) -> Floats:
        west, east, north, south = np.array(self._boxes).T
        wires = (east - west + south - north) * self._tree / ((east - west + 1) * (south - north + 1))
        columns, rows = self._placement.logic.shape
        corners = np.zeros((columns + 1, rows + 1))  # their sums from the north-west on are the wires of the tiles
        for x, y, sign in ((west, north, 1), (east + 1, north, -1), (west, south + 1, -1), (east + 1, south + 1, 1)):
            np.add.at(corners, (x, y), sign * wires)
        tiles = np.pad(corners.cumsum(0).cumsum(1)[:-1, :-1], SQUARE // 2)
        made: Floats = sliding_window_view(tiles, (SQUARE, SQUARE)).mean((2, 3))
        return made

    def pass_over(self) -> int:
        """Once over all in an order at random; how many moves that were."""
        excess = CROWDED * np.maximum(0, self.crowding() / ROOM - 1)
        self._excess = np.pad(excess.cumsum(0).cumsum(1), ((1, 0), (1, 0))).tolist()
        before = self.moves
        for number in self._random.permutation(len(self._placement.movables)):
            self.moves += self._improve(self._placement.movables[number])
        return self.moves - before

    def _improve(self, movable: Movable) -> bool:
        """Moves one to the best place that it can have; whether there was a better one."""
        placement, nets, here = self._placement, self._without(movable), self._place(movable)
        now = self._cost(nets.values(), here)
        costs = ((self._cost(nets.values(), there, now - GAIN), there) for there in self._around(nets.values(), here))
        for _, there in sorted(cost for cost in costs if cost[0] < now - GAIN):
            slot = placement.slot(movable, *there)
            if slot:
                placement.move(movable, *there, slot)
                self._has_moved(movable)
                return True
            for other in placement.alike(movable, *there):
                if self._saved(nets, self._without(other), here, there) > GAIN:
                    placement.exchange(movable, other)
                    self._has_moved(movable)
                    self._has_moved(other)
                    return True
        return False

    def _around(self, boxes: Collection[Box], here: Tile) -> Iterator[Tile]:
        """The tiles of logic about the nearest one in which the wires to these boxes would be shortest."""
        if not boxes:
            return iter(())
        west, east, north, south = zip(*boxes, strict=True)
        return self._placement.logic_near(_nearest(here[0], west + east), _nearest(here[1], north + south), REACH)

    def _cost(self, boxes: Iterable[Box], tile: Tile, limit: float = inf) -> float:
        """Of wires from these boxes to a tile; or more than the limit, if it is."""
        x, y = tile
        cost, excess = 0.0, self._excess
        for west, east, north, south in boxes:
            west, east, north, south = min(west, x), max(east, x) + 1, min(north, y), max(south, y) + 1
            length = east - west + south - north - 2
            over = excess[east][south] - excess[west][south] - excess[east][north] + excess[west][north]
            cost += length * (1 + over / ((east - west) * (south - north)))
            if cost > limit:
                break
        return cost

    def _saved(self, nets: Mapping[int, Box], others: Mapping[int, Box], here: Tile, there: Tile) -> float:
        """What it saves if two change places, whose nets these are without them. A net of both stays as it is."""
        own, other = (
            [box for net, box in mine.items() if net not in theirs] for mine, theirs in ((nets, others), (others, nets))
        )
        saved = self._cost(own, here) - self._cost(own, there)
        return saved + self._cost(other, there) - self._cost(other, here)

    def _without(self, movable: Movable) -> dict[int, Box]:
        """The boxes about the other cells of its nets."""
        x, y = self._place(movable)
        boxes = {net: self._boxes[net] for net in self._joined[movable]}
        for net, (west, east, north, south) in boxes.items():
            if not (west < x < east and north < y < south):
                boxes[net] = self._box(cell for cell in self._nets[net] if cell not in movable.cells)
        return boxes

    def _outside(self, movable: Movable, joined: Mapping[int, list[int]]) -> list[int]:
        """Its nets that lead to other cells."""
        mine = set(movable.cells)
        return [net for net in dict.fromkeys(chain(*(joined[cell] for cell in mine))) if not self._nets[net] <= mine]

    def _has_moved(self, movable: Movable) -> None:
        placement = self._placement
        for cell in movable.cells:
            self._x[cell], self._y[cell] = int(placement.x[cell]), int(placement.y[cell])
        for net in self._joined[movable]:
            self._boxes[net] = self._box(self._nets[net])

    def _place(self, movable: Movable) -> Tile:
        return self._x[movable.cells[0]], self._y[movable.cells[0]]

    def _box(self, cells: Iterable[int]) -> Box:
        """About these cells."""
        x, y = zip(*((self._x[cell], self._y[cell]) for cell in cells), strict=True)
        return min(x), max(x), min(y), max(y)


def _nets(placement: Placement) -> Iterator[set[int]]:
    """The cells of each net; not of clocks, which have wires of their own."""
    nets = defaultdict(set)
    for number, cell in enumerate(placement.cells):
        for net in chain.from_iterable(cell["connections"].values()):
            nets[net].add(number)
    for net, cells in nets.items():
        if len(cells) > 1 and net in placement.drivers and placement.kinds[placement.drivers[net]] in SOURCES:
            yield cells


def _nearest(place: int, ends: tuple[int, ...]) -> int:
    """The nearest column or row in which the wires to boxes with these ends are shortest: between the middle two."""
    ordered, middle = sorted(ends), len(ends) // 2
    return sorted((place, ordered[middle - 1], ordered[middle]))[1]
