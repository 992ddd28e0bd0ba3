"""What one cell sees of a placement: its wires, the ways through them, and where these would be shorter."""

from collections.abc import Iterator

import numpy as np

from sley.fpga.placement.delays import CLOCK_TO, Delays, Floats, Integers
from sley.fpga.placement.placement import FLIP_FLOP, Movable, Placement

NEAR = 0.85
"""Wires on ways longer than this share of the aim pull."""
MARGIN = 2
"""Columns and rows beyond what a movable is joined to in which it may lie."""
TRIES = 400
"""Tiles in which a place is looked for, the best first."""
LENGTH, PULL, WIRE_LENGTH, GAIN = 100.0, 0.02, 0.001, 0.02
"""What a place costs for each nanosecond of the longest way, for the square of the tiles of the longest near wire of
each kind, and for each tile of any wire; and how much less it has to cost for a move."""


class View:
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
        cell = self.movable.cells[0]
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
