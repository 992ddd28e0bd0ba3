"""Operating points that change while work runs: who chooses them, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Protocol

from sley.driver import BadRequest, Counters
from sley.runtime.device.graph import Graph
from sley.runtime.device.stream import Stream
from sley.runtime.energy.estimate import Energy, estimate
from sley.runtime.energy.point import OperatingPoint
from sley.runtime.energy.table import DEFAULT, Table


@dataclass(frozen=True)
class Interval:
    """Work that ran at one operating point: what it was called, what was counted, what it took."""

    name: str
    point: OperatingPoint
    counters: Counters
    energy: Energy


class Governor(Protocol):
    """Whoever chooses the operating point of an interval, before it runs."""

    def __call__(self, name: str, past: Sequence[Interval]) -> OperatingPoint:
        """For work of this name, behind these intervals."""


class Meter:
    """Energy and time of work on a stream, interval by interval, at the points that a governor chooses.

    On an engine this is accounting: cycles do not change, not even those of DRAM, whose clock would stay. On a board
    ``set_clock`` sets the clock, and memory keeps its own time.

    Parameters
    ----------
    stream: of an engine or board that counts cycles. Nothing else may run on the chip.
    governor: chooses the point of each interval.
    table: energies of one technology.
    set_clock: called with a point before the first interval, and before each whose point is another one.

    Attributes
    ----------
    intervals: so far.
    """

    def __init__(
        self,
        stream: Stream,
        governor: Governor,
        *,
        table: Table = DEFAULT,
        set_clock: Callable[[OperatingPoint], None] | None = None,
    ) -> None:
        self.stream, self.intervals = stream, list[Interval]()
        self._governor, self._table, self._set_clock = governor, table, set_clock

    @contextmanager
    def interval(self, name: str) -> Iterator[None]:
        """Work submitted inside is an interval; on leaving it is done. Raises what ``estimate`` raises."""
        point = self._governor(name, tuple(self.intervals))
        if self._set_clock is not None and (not self.intervals or point != self.intervals[-1].point):
            self.stream.synchronize()
            self._set_clock(point)
        with self.stream.counted() as count:
            yield
        energy = estimate(count.counters, self.stream.device.config, table=self._table, point=point)
        self.intervals.append(Interval(name, point, count.counters, energy))

    def launch(self, graph: Graph) -> None:
        """Runs a graph that was captured on the stream, each launch an interval that is called as its program. Copies
        and fills in it are left out."""
        for number, launch in enumerate(graph.launches):
            with self.interval(launch.program.name):
                graph.launch_one(number)

    @property
    def energy(self) -> Energy:
        """Of all intervals, and their time. Raises ``BadRequest`` if there is none."""
        if not self.intervals:
            raise BadRequest("there is no energy yet: run something in interval() or launch() first")
        return reduce(add, (interval.energy for interval in self.intervals))
