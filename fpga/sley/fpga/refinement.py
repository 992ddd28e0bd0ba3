"""Moves what lies on the longest ways of a placement, so that they become shorter."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sley.fpga.delays import CLOCK_TO, Delays, Floats, Integers
from sley.fpga.placement import FLIP_FLOP, Movable, Placement

AIM = 0.95
"""What is on ways longer than this share of the longest is moved."""
NEAR = 0.85
"""Wires on ways longer than this share of the aim pull."""
RESTING = 0.3
"""Share that rests in a round, at random: two that wait for each other would go around in a circle."""
PATIENCE, ROUNDS = 25, 300
"""Rounds without a shorter way, and rounds at all, after which it ends."""
MARGIN = 2
"""Columns and rows beyond what a movable is joined to in which it may lie."""
TRIES = 400
"""Tiles in which a place is looked for, the best first."""
LENGTH, PULL, WIRE_LENGTH, GAIN = 100.0, 0.02, 0.001, 0.02
"""What a place costs for each nanosecond of the longest way, for the square of the tiles of the longest near wire of
each kind, and for each tile of any wire; and how much less it has to cost for a move."""


@dataclass(frozen=True)
class Refinement:
    """Nanoseconds of the longest way before and after, as ``Delays`` counts, and the number of moves."""

    before: float
    after: float
    moves: int


def refine(placement: Placement) -> Refinement:
    """Moves what lies on the longest ways, as long as these become shorter; the same placement gives the same result.

    nextpnr's placers mind the length of all wires and leave a few ways much longer than all others. In each round, what
    lies on a way longer than ``AIM`` of the longest goes where the longest of its own ways is shortest, and of such
    places to where its near wires have equal shares: so a flip-flop moves towards the end that waits for it. It goes to
    a free slot, or changes places with what is far from any long way. Nothing moves beside what has just moved, as the
    analysis is of before that. The best of all rounds is kept.
    """
    delays, random = Delays(placement), np.random.default_rng(1)
    views = [_View(movable, placement, delays) for movable in placement.movables]
    of_cell = {cell: view for view in views for cell in view.movable.cells}
    delays.analyse()
    before = best = delays.longest
    kept, moves, waited = placement.places(), 0, 0
    for _ in range(ROUNDS):
        aim = AIM * min(delays.longest, best)
        longest = np.maximum(delays.end, delays.arrival + delays.departure)
        own = np.array([max(longest[cell] for cell in view.movable.cells) for view in views])
        near = np.nonzero(own > aim)[0]
        resting: set[_View] = set()
        for number in near[np.argsort(-own[near], kind="stable")]:
            if views[number] in resting or random.random() < RESTING:
                continue
            for moved in _move(views[number], aim, placement, of_cell, resting):
                resting.update(of_cell[cell] for cell in moved.neighbours if cell in of_cell)
                moves += 1
        delays.analyse()
        waited += 1
        if delays.longest < best:
            best, kept, waited = delays.longest, placement.places(), 0
        if waited > PATIENCE:
            break
    placement.restore(kept)
    return Refinement(before, best, moves)


def _move(
    view: "_View", aim: float, placement: Placement, of_cell: dict[int, "_View"], resting: set["_View"]
) -> "tuple[_View, ...]":
    """Moves one to the best place that it can have; what has moved then, with what it has changed places with."""
    here = view.place
    for there in view.better(aim):
        slot = placement.slot(view.movable, *there)
        if slot:
            placement.move(view.movable, *there, slot)
            return (view,)
        for movable in placement.alike(view.movable, *there):
            other = of_cell[next(movable.cells)]
            beside = other in resting or any(cell in view.neighbours for cell in movable.cells)
            if not beside and other.longest_at(*here) <= aim:
                placement.exchange(view.movable, movable)
                return view, other
    return ()


class _View:
    """What a movable sees: its wires into the LUT, out of it, into the flip-flop and out of that, in this order."""

    def __init__(self, movable: Movable, placement: Placement, delays: Delays) -> None:
        self.movable, self._placement, self._delays = movable, placement, delays
        mine = set(movable.cells)
        wires: list[int] = []
        far: list[int] = []
        self._kinds: list[slice] = []
        for cell in (movable.lut, movable.flip_flop):
            for ways, ends in ((delays.into, delays.source), (delays.out_of, delays.sink)):
                found = [wire for wire in ways.get(cell, ()) if ends[wire] not in mine] if cell is not None else []
                self._kinds.append(slice(len(wires), len(wires) + len(found)))
                wires += found
                far += [int(ends[wire]) for wire in found]
        self._wires, self._far = np.array(wires, np.int64), np.array(far, np.int64)
        self.neighbours = set(far)

    @property
    def place(self) -> tuple[int, int]:
        """Column and row of the tile in which it lies."""
        cell = next(self.movable.cells)
        return int(self._placement.x[cell]), int(self._placement.y[cell])

    def better(self, aim: float) -> Iterator[tuple[int, int]]:
        """Tiles in which it costs less, the best first."""
        here = self.place
        base = self._base()
        distance = self._distance(*here)
        length = self._lengths(base, distance)
        weight = np.maximum(0, (length[0] / aim - NEAR) / (1 - NEAR)) ** 2
        now = self._cost(distance, length, weight, aim)[0]
        x, y = self._around(self._far[weight > 0], *here)
        distance = self._distance(x, y)
        costs = self._cost(distance, self._lengths(base, distance), weight, aim)
        for k in np.argsort(costs, kind="stable")[:TRIES]:
            if costs[k] >= now - GAIN:
                return
            if (x[k], y[k]) != here:
                yield int(x[k]), int(y[k])

    def longest_at(self, x: int, y: int) -> float:
        """Nanoseconds of the longest of its ways, if it lay in this tile."""
        return float(self._lengths(self._base(), self._distance(x, y)).max(initial=0))

    def _base(self) -> Floats:
        """Of the longest way through each wire, what lies beyond its far end, and the cell itself."""
        delays, (into_lut, out_of_lut, into_flip_flop, out_of_flip_flop) = self._delays, self._kinds
        base = np.empty(len(self._wires))
        for part in (into_lut, into_flip_flop):
            wires = self._wires[part]
            base[part] = delays.arrival[self._far[part]] + np.maximum(0, delays.through[wires])
        for part in (out_of_lut, out_of_flip_flop):
            base[part] = delays.rest(self._wires[part])
        base[out_of_flip_flop] += CLOCK_TO[FLIP_FLOP]
        return base

    def _distance(self, x: Integers | int, y: Integers | int) -> Integers:
        """From each of these tiles over each wire."""
        placement, far = self._placement, self._far
        made: Integers = abs(np.reshape(x, (-1, 1)) - placement.x[far]) + abs(np.reshape(y, (-1, 1)) - placement.y[far])
        return made

    def _lengths(self, base: Floats, distance: Integers) -> Floats:
        """The longest way through each wire: all into the LUT go on with the longest out of it."""
        into, out, *_ = self._kinds
        parts = base + self._delays.wire(distance, self._wires)
        made = parts.copy()
        made[:, into] += _most(parts[:, out])[:, None]
        made[:, out] += _most(parts[:, into])[:, None]
        return made

    def _cost(self, distance: Integers, length: Floats, weight: Floats, aim: float) -> Floats:
        pull = distance**2 * weight
        made: Floats = LENGTH * np.maximum(_most(length), aim) + WIRE_LENGTH * distance.sum(1)
        return made + PULL * sum(_most(pull[:, kind]) for kind in self._kinds)

    def _around(self, far: Integers, x: int, y: int) -> tuple[Integers, Integers]:
        """The tiles of logic between here and these cells."""
        logic = self._placement.logic
        spans = [
            slice(max(0, min(ends) - MARGIN), max(ends) + MARGIN + 1)
            for ends in (np.append(self._placement.x[far], x), np.append(self._placement.y[far], y))
        ]
        columns, rows = np.nonzero(logic[spans[0], spans[1]])
        return columns + spans[0].start, rows + spans[1].start


def _most(values: Floats) -> Floats:
    """The largest of each row, 0 of none."""
    made: Floats = values.max(1, initial=0)
    return made
