"""How long paths of a placed ECP5 take from register to register, before they are routed."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.fpga.placement.floorplan import MEMORY, MULTIPLIER
from sley.fpga.placement.placement import CARRY, FLIP_FLOP, LUT, RAM_WRITE, Placement

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

WIRE, TILE = 0.52, 0.040
"""Nanoseconds of a wire, and what each column or row adds, at speed 8: fitted to what nextpnr says of routed chips. At
other speeds all delays of this module are longer by much the same factor."""
THROUGH, INTO_CARRY, ALONG_CARRY, PRODUCT = 0.14, 0.28, 0.04, 3.0
"""Through a LUT, into a carry chain, from one cell of it to the next, through a multiplier without registers."""
CLOCK_TO = {FLIP_FLOP: 0.31, MEMORY: 3.5}
"""From the clock to the output."""
CLOCK_TO_OTHERS = 0.4
INSIDE = ("DI", "FCI", "F1", "FXA", "FXB")
"""Ports with a wire of their own inside a tile."""
SOURCES = (FLIP_FLOP, LUT, MULTIPLIER, MEMORY)
"""Cells at whose outputs paths are counted: not clocks, pins and constants."""


def critical_path_ns(placement: Placement) -> float:
    """Nanoseconds of the critical path of a placement."""
    delays = Delays(placement)
    delays.analyse()
    return delays.critical


class Delays:
    """The wires of a placement, from the cell ``source`` to the cell ``sink``, and what they are parts of.

    ``through`` is how long the sink takes to its output, or -1 where a path ends; wires that are not ``wired`` are
    inside of a tile and take no time. ``into`` and ``out_of`` have the wires of each cell. ``analyse`` finds
    ``arrival``, when the output of a cell is known after the clock, ``departure``, how long it takes from there to the
    end of the longest path, and ``end``, when the longest path that ends in a cell does.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        cells, kinds, drivers = placement.cells, placement.kinds, placement.drivers
        computes = [self._computes(number) for number in range(len(cells))]
        constant = [does and not _inputs(cell) for does, cell in zip(computes, cells, strict=True)]
        wires = []
        for sink, cell in enumerate(cells):
            for port, nets in cell["connections"].items():
                source = drivers.get(nets[0]) if nets else None
                if source is None or cell["port_directions"][port] == "output":
                    continue
                if constant[source] or kinds[source] not in SOURCES:
                    continue
                through = self._through(sink, port) if computes[sink] else -1.0
                wires.append((source, sink, port not in INSIDE, through))
        self.source, self.sink = (np.array([wire[k] for wire in wires], np.int64) for k in (0, 1))
        self.wired = np.array([wire[2] for wire in wires], bool)
        self.through = np.array([wire[3] for wire in wires])
        self.into: dict[int, list[int]] = defaultdict(list)
        self.out_of: dict[int, list[int]] = defaultdict(list)
        for number, (source, sink, *_) in enumerate(wires):
            self.into[sink].append(number)
            self.out_of[source].append(number)
        self._start = np.array(
            [0.0 if does else CLOCK_TO.get(kind, CLOCK_TO_OTHERS) for does, kind in zip(computes, kinds, strict=True)]
        )
        level = self._levels(computes)
        self._forwards = [
            np.nonzero((self.through >= 0) & (level[self.sink] == k))[0] for k in range(1, level.max() + 1)
        ]
        self._backwards = [np.nonzero(level[self.source] == k)[0] for k in range(level.max(), -1, -1)]

    def analyse(self) -> None:
        """With the cells where they are now."""
        source, sink, wire = self.source, self.sink, self.wire_delay(self.distance(), slice(None))
        self.arrival = self._start.copy()
        for part in self._forwards:
            np.maximum.at(self.arrival, sink[part], self.arrival[source[part]] + wire[part] + self.through[part])
        self.departure = np.zeros(len(self._start))
        for part in self._backwards:
            np.maximum.at(self.departure, source[part], wire[part] + self.remaining(part))
        last = np.nonzero(self.through < 0)[0]
        self.end = np.zeros(len(self._start))
        np.maximum.at(self.end, sink[last], self.arrival[source[last]] + wire[last])

    def distance(self) -> Integers:
        """Columns and rows over each wire."""
        x, y = self._placement.x, self._placement.y
        made: Integers = abs(x[self.source] - x[self.sink]) + abs(y[self.source] - y[self.sink])
        return made

    def path_delays(self) -> Floats:
        """Nanoseconds of the longest path along each wire."""
        wire = self.wire_delay(self.distance(), slice(None))
        made: Floats = self.arrival[self.source] + wire + self.remaining(np.arange(len(wire)))
        return made

    @property
    def critical(self) -> float:
        """Nanoseconds of the critical path."""
        return float(self.end.max())

    def wire_delay(self, distance: Integers, wires: Integers | slice | int) -> Floats:
        """Nanoseconds of these wires over so many columns and rows."""
        made: Floats = self.wired[wires] * (WIRE + TILE * distance)
        return made

    def remaining(self, wires: Integers) -> Floats:
        """From the end of these wires to the end of the longest path."""
        return np.where(self.through[wires] < 0, 0, self.through[wires] + self.departure[self.sink[wires]])

    def _computes(self, cell: int) -> bool:
        if self._placement.kinds[cell] == MULTIPLIER:
            parameters = self._placement.cells[cell]["parameters"]
            return all(value == "NONE" for name, value in parameters.items() if name.startswith("REG_"))
        return self._placement.kinds[cell] == LUT and self._placement.mode(cell) != RAM_WRITE

    def _through(self, cell: int, port: str) -> float:
        if self._placement.kinds[cell] == MULTIPLIER:
            return PRODUCT
        if self._placement.mode(cell) == CARRY:
            return ALONG_CARRY if port == "FCI" else INTO_CARRY
        return -1.0 if port in ("WRE", "WCK") else THROUGH

    def _levels(self, computes: list[bool]) -> Integers:
        """The most cells that compute up to each one and with it; 0 for others. A loop ends paths."""
        level = np.zeros(len(computes), np.int64)
        waits = [0] * len(computes)
        for source, sink, through in zip(self.source, self.sink, self.through, strict=True):
            waits[sink] += computes[source] and through >= 0
        ready = [cell for cell, does in enumerate(computes) if does and not waits[cell]]
        level[ready] = 1
        while ready:
            cell = ready.pop()
            for wire in self.out_of[cell]:
                if self.through[wire] >= 0:
                    sink = int(self.sink[wire])
                    level[sink] = max(level[sink], level[cell] + 1)
                    waits[sink] -= 1
                    if not waits[sink]:
                        ready.append(sink)
        return level


def _inputs(cell: Mapping[str, Any]) -> bool:
    """Whether there are any."""
    return any(nets and cell["port_directions"][port] == "input" for port, nets in cell["connections"].items())
