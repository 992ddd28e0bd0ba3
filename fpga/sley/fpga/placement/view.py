"""What one cell sees of a placement: its wires, the paths through them, and where these would be shorter."""

from collections.abc import Iterator

import numpy as np

from sley.fpga.placement.delays import CLOCK_TO, Delays, Floats, Integers
from sley.fpga.placement.placement import FLIP_FLOP, Movable, Placement

NEAR = 0.85
"""Wires on paths longer than this share of the aim pull."""
MARGIN = 2
"""Columns and rows beyond what a movable is joined to in which it may lie."""
TRIES = 400
"""Tiles in which a place is looked for, the best first."""
LENGTH, PULL, WIRE_LENGTH, GAIN = 100.0, 0.02, 0.001, 0.02
"""What a place costs for each nanosecond of the critical path, for the square of the tiles of the longest near wire of
each kind, and for each tile of any wire; and how much less it has to cost for a move."""


class View:
    """What a movable sees: its wires into the LUT, out of it, into the flip-flop and out of that, in this order."""

    def __init__(self, movable: Movable, placement: Placement, delays: Delays) -> None:
        self.movable, self._placement, self._delays = movable, placement, delays
        own_cells = set(movable.cells)
        wires: list[int] = []
        far_ends: list[int] = []
        self._kinds: list[slice] = []
        for cell in (movable.lut, movable.flip_flop):
            for wires_of, ends in ((delays.into, delays.source), (delays.out_of, delays.sink)):
                found = [] if cell is None else [wire for wire in wires_of.get(cell, ()) if ends[wire] not in own_cells]
                self._kinds.append(slice(len(wires), len(wires) + len(found)))
                wires += found
                far_ends += [int(ends[wire]) for wire in found]
        self._wires, self._far_ends = np.array(wires, np.int64), np.array(far_ends, np.int64)
        self.neighbours = set(far_ends)

    @property
    def place(self) -> tuple[int, int]:
        """Column and row of the tile in which it lies."""
        cell = self.movable.cells[0]
        return int(self._placement.x[cell]), int(self._placement.y[cell])

    def better(self, aim: float) -> Iterator[tuple[int, int]]:
        """Tiles in which it costs less, the best first."""
        current = self.place
        base = self._base()
        distance = self._distance(*current)
        length = self._lengths(base, distance)
        weight = np.maximum(0, (length[0] / aim - NEAR) / (1 - NEAR)) ** 2
        current_cost = self._cost(distance, length, weight, aim)[0]
        x, y = self._around(self._far_ends[weight > 0], *current)
        distance = self._distance(x, y)
        costs = self._cost(distance, self._lengths(base, distance), weight, aim)
        for k in np.argsort(costs, kind="stable")[:TRIES]:
            if costs[k] >= current_cost - GAIN:
                return
            if (x[k], y[k]) != current:
                yield int(x[k]), int(y[k])

    def path_delay_at(self, x: int, y: int) -> float:
        """Nanoseconds of the longest of its paths, if it lay in this tile."""
        return float(self._lengths(self._base(), self._distance(x, y)).max(initial=0))

    def _base(self) -> Floats:
        """Of the longest path through each wire, what lies beyond its far end, and the cell itself."""
        delays, (into_lut, out_of_lut, into_flip_flop, out_of_flip_flop) = self._delays, self._kinds
        base = np.empty(len(self._wires))
        for part in (into_lut, into_flip_flop):
            wires = self._wires[part]
            base[part] = delays.arrival[self._far_ends[part]] + np.maximum(0, delays.through[wires])
        for part in (out_of_lut, out_of_flip_flop):
            base[part] = delays.remaining(self._wires[part])
        base[out_of_flip_flop] += CLOCK_TO[FLIP_FLOP]
        return base

    def _distance(self, x: Integers | int, y: Integers | int) -> Integers:
        """From each of these tiles over each wire."""
        far_x, far_y = self._placement.x[self._far_ends], self._placement.y[self._far_ends]
        made: Integers = abs(np.reshape(x, (-1, 1)) - far_x) + abs(np.reshape(y, (-1, 1)) - far_y)
        return made

    def _lengths(self, base: Floats, distance: Integers) -> Floats:
        """The longest path through each wire: all into the LUT go on with the longest out of it."""
        into, out, *_ = self._kinds
        parts = base + self._delays.wire_delay(distance, self._wires)
        made = parts.copy()
        made[:, into] += _most(parts[:, out])[:, None]
        made[:, out] += _most(parts[:, into])[:, None]
        return made

    def _cost(self, distance: Integers, length: Floats, weight: Floats, aim: float) -> Floats:
        pull = distance**2 * weight
        made: Floats = LENGTH * np.maximum(_most(length), aim) + WIRE_LENGTH * distance.sum(1)
        return made + PULL * sum(_most(pull[:, kind]) for kind in self._kinds)

    def _around(self, far_ends: Integers, x: int, y: int) -> tuple[Integers, Integers]:
        """The tiles of logic between here and these cells."""
        logic = self._placement.logic
        spans = [
            slice(max(0, min(ends) - MARGIN), max(ends) + MARGIN + 1)
            for ends in (np.append(self._placement.x[far_ends], x), np.append(self._placement.y[far_ends], y))
        ]
        columns, rows = np.nonzero(logic[spans[0], spans[1]])
        return columns + spans[0].start, rows + spans[1].start


def _most(values: Floats) -> Floats:
    """The largest of each row, 0 of none."""
    made: Floats = values.max(1, initial=0)
    return made
