"""Where the cells on the longest paths would lie best if there were room everywhere: a linear programme."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from sley.fpga.errors import FlowError
from sley.fpga.placement.delays import TILE, WIRE, Bools, Delays, Floats, Integers
from sley.fpga.placement.placement import Chain, Movable, Placement

REACH = 20
"""Columns and rows that a cell may go at once."""
DISTANCE = 1e-3
"""What a tile that a cell goes costs on average, where the critical path costs its nanoseconds: of equals, the
least."""


@dataclass(frozen=True)
class Relaxation:
    """The nanoseconds of the critical path, and columns and rows of the parts, in their order."""

    critical: float
    x: Floats
    y: Floats


def relax(placement: Placement, delays: Delays, parts: Sequence[Movable | Chain], limit: float) -> Relaxation:
    """The critical path is as short as it can be, if these lie anywhere within ``REACH`` and others do not move.

    All moves count at once, in contrast to one move after another, each of which may be of no use without the others.
    A wire takes time for the columns and rows between its ends, and a path is a sum of wires, so both are linear; each
    wire that may become part of a path longer than ``limit`` is a row of the programme. Others count as ``delays`` has
    analysed them. HiGHS solves 20,000 rows in some seconds; a programme that it cannot solve is a ``FlowError``.
    """
    return _Relaxing(placement, delays, parts, limit).solve()


class _Relaxing:
    """Variables: columns of the first cells of all parts, their rows; when each cell that computes on such a path is
    known; the critical path; the columns and the rows that each wire spans; those that each part goes."""

    def __init__(self, placement: Placement, delays: Delays, parts: Sequence[Movable | Chain], limit: float) -> None:
        self._placement, self._delays = placement, delays
        self._cells = np.array([part.cells[0] for part in parts], np.int64)  # the first of each
        self._ends = np.array([max(part.offsets) for part in parts], np.int64)
        number = len(placement.kinds)
        self._part = np.full(number, -1)
        for k, part in enumerate(parts):
            self._part[list(part.cells)] = k
        moves = self._part >= 0

        source, sink = delays.source, delays.sink
        computes = np.zeros(number, bool)
        computes[sink[delays.through >= 0]] = True
        computes &= moves | (np.maximum(delays.end, delays.arrival + delays.departure) > limit)
        self._distance = delays.distance()
        self._wires = self._wires_that_count(moves, computes, limit)
        stretches = (moves[source] | moves[sink]) & (self._part[source] != self._part[sink])
        self._spans = self._numbered(self._wires[(stretches & delays.wired)[self._wires]], len(source))
        self._known = self._numbered(np.nonzero(computes)[0], number)

        self._variables = 0
        self._x, self._y = self._block(len(parts)), self._block(len(parts))
        self._arrival, self._critical = self._block(int(self._known.max()) + 1), self._block(1)
        self._columns, self._rows = (self._block(int(self._spans.max()) + 1) for _ in range(2))
        self._moved_x, self._moved_y = self._block(len(parts)), self._block(len(parts))
        self._terms: list[tuple[int, int, float]] = []
        self._bounds: list[float] = []

    def _wires_that_count(self, moves: Bools, computes: Bools, limit: float) -> Integers:
        """Wires from or to what moves or computes, which may become part of a path longer than the limit."""
        delays = self._delays
        path = delays.path_delays() + 2 * REACH * TILE * (moves[delays.source].astype(float) + moves[delays.sink])
        touched = moves | computes
        return np.nonzero((touched[delays.source] | touched[delays.sink]) & (path > limit))[0]

    def _block(self, size: int) -> int:
        """The first of so many variables."""
        self._variables += size
        return self._variables - size

    @staticmethod
    def _numbered(chosen: Integers, number: int) -> Integers:
        """Of each of so many, which of the chosen it is, or -1."""
        made = np.full(number, -1)
        made[chosen] = np.arange(len(chosen))
        return made

    def solve(self) -> Relaxation:
        if not len(self._cells):
            return Relaxation(self._delays.critical, np.empty(0), np.empty(0))
        for wire in self._wires:
            self._wire(int(wire))
        places = ((self._x, self._moved_x, self._placement.x), (self._y, self._moved_y, self._placement.y))
        low, high = np.zeros(self._variables), np.full(self._variables, np.inf)
        for first, moved, place in places:
            for k, current in enumerate(place[self._cells]):
                self._at_most(current, [(first + k, 1.0), (moved + k, -1.0)])
                self._at_most(-current, [(first + k, -1.0), (moved + k, -1.0)])
            span = slice(first, first + len(self._cells))
            low[span] = np.maximum(place[self._cells] - REACH, 0)
            high[span] = np.minimum(place[self._cells] + REACH, place.max() - self._ends * (first == self._x))
        cost = np.zeros(self._variables)
        cost[self._critical] = 1
        cost[self._moved_x :] = DISTANCE / len(self._cells)
        rows, columns, values = (np.array(part) for part in zip(*self._terms, strict=True))
        matrix = csr_array((values, (rows, columns)), shape=(len(self._bounds), self._variables))
        found = linprog(
            cost, A_ub=matrix, b_ub=np.array(self._bounds), bounds=np.column_stack((low, high)), method="highs-ipm"
        )
        if not found.success:
            raise FlowError(f"refinement failed: places of {len(self._cells)} cells were not found: {found.message}")
        x, y = (found.x[first : first + len(self._cells)] for first in (self._x, self._y))
        return Relaxation(float(found.x[self._critical]), x, y)

    def _wire(self, wire: int) -> None:
        """What its ends make of how far it spans, and that of when its sink is known, or of the critical path."""
        delays = self._delays
        source, sink, through = int(delays.source[wire]), int(delays.sink[wire]), float(delays.through[wire])
        terms: list[tuple[int, float]] = []
        span = int(self._spans[wire])
        if span < 0:
            time = float(delays.wire_delay(self._distance[wire], wire))
        else:
            time = WIRE
            terms += [(self._columns + span, TILE), (self._rows + span, TILE)]
            self._spanned(source, sink, self._columns + span, self._x, self._placement.x)
            self._spanned(source, sink, self._rows + span, self._y, self._placement.y)
        if self._known[source] >= 0:
            terms.append((self._arrival + int(self._known[source]), 1.0))
        else:
            time += float(delays.arrival[source])
        if through >= 0 and self._known[sink] >= 0:
            self._at_most(-time - through, [*terms, (self._arrival + int(self._known[sink]), -1.0)])
        else:
            self._at_most(-time - float(delays.remaining(np.array([wire]))[0]), [*terms, (self._critical, -1.0)])

    def _spanned(self, source: int, sink: int, span: int, first: int, place: Integers) -> None:
        """At least the difference between both ends, whichever is larger."""
        constant, terms = 0.0, []
        for cell, sign in ((source, 1.0), (sink, -1.0)):
            part = int(self._part[cell])
            if part >= 0:  # where its first cell lies, and how far from there this one does
                terms.append((first + part, sign))
                constant += sign * float(place[cell] - place[self._cells[part]])
            else:
                constant += sign * float(place[cell])
        self._at_most(-constant, [*terms, (span, -1.0)])
        self._at_most(constant, [*((variable, -sign) for variable, sign in terms), (span, -1.0)])

    def _at_most(self, bound: float, terms: Iterable[tuple[int, float]]) -> None:
        self._terms += [(len(self._bounds), variable, value) for variable, value in terms]
        self._bounds.append(bound)
