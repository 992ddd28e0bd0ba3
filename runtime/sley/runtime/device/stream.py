"""Work in order: one stream for each hardware queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import numpy as np

from sley.abi.packets import FENCE_BYTES
from sley.driver import BadRequest, Counters, NoCycleCounts, Queue
from sley.runtime.device.arguments import Argument, bounded, check_bounds, in_order, word, written
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.client import Client, Owned, drain
from sley.runtime.device.event import Event
from sley.runtime.device.graph import Graph, Launch
from sley.runtime.device.program import Program
from sley.runtime.errors import KernelError, ShapeMismatch, UnsupportedType


@dataclass
class Timing:
    """Attributes: ``measured``: cycles from the doorbell to the fence behind the work, if they were counted."""

    measured: int | None = None

    @property
    def cycles(self) -> int:
        """What was measured. Raises ``NoCycleCounts`` on an engine without cycles."""
        if self.measured is None:
            raise NoCycleCounts
        return self.measured


@dataclass
class Count(Timing):
    """Besides, what was counted in these cycles and shortly before and after them."""

    counters: Counters = field(kw_only=True)

    @property
    def outside(self) -> int:
        """Cycles in ``counters`` that are not between doorbell and fence; this stream had no work in them."""
        return self.counters.cycles - self.cycles


class Stream(Owned):
    """Launches, copies and fills in the order of the calls; calls return before the work is done.

    Attributes
    ----------
    device: whose stream it is. queue: the driver's queue below.
    """

    def __init__(self, device: Client, queue: Queue) -> None:
        self.device = device
        self.queue = queue
        self._graph: Graph | None = None

    def launch(
        self,
        program: Program,
        args: Mapping[str, Argument] | Sequence[Argument] = (),
        grid: tuple[int, ...] = (1,),
        gang: bool = False,
    ) -> None:
        """Runs ``grid`` blocks of a program; in a ``gang``, as many across and down as the chip has cores, those of one
        z together, block (x, y) on the core in column x and row y. Only blocks of a gang may share loads.

        Arguments are given by name or in order: buffers (their address), integers of 32 bits, floats (as fp32 bits).
        The elements of a buffer must be contiguous, unless the program knows its strides (``Program.strided``).
        """
        config = self.device.config
        if program.config_hash not in (0, config.hash):
            raise KernelError(f"program {program.name} was built for another chip than {config.name}; build it again")
        if not isinstance(grid, Sequence) or not 1 <= len(grid) <= 3:
            raise BadRequest(f"grid is {grid!r}; give a tuple of one to three sides, such as (4,) or (4, 2, 1)")
        x, y, z = (*grid, 1, 1)[:3]
        values = in_order(program, args)
        words = self.words(program, values)
        if self._graph is None:
            check_bounds(program, values)
        else:
            self._check_written_in_graph(self._graph, program, values)
        address, tag = self.device.load(program)
        position = self.queue.launch(address, len(program.words), words, (x, y, z), tag, gang)
        if self._graph is not None:
            self._graph.launches.append(Launch(program, position, values))
        for array in written(program, values):
            array.known.forget()

    def _check_written_in_graph(self, graph: Graph, program: Program, values: list[Argument]) -> None:
        """A bound is checked whenever the graph is launched, so nothing in the graph may write the array before."""
        for name, array in bounded(program, values):
            if any(other.known is array.known and other.layout.overlaps(array.layout) for other in graph.written()):
                raise BadRequest(
                    f"the graph writes {name} of {program.name}, whose values are checked before the graph is "
                    "launched: write it outside of the graph"
                )

    def words(self, program: Program, values: Sequence[Argument]) -> list[int]:
        """Arguments in order, as a kernel gets them."""
        return [word(self.device, program, number, value) for number, value in enumerate(values)]

    def copy(self, destination: Buffer, source: Buffer) -> None:
        """Copies one device array to another of the same size. Both may be views whose elements are contiguous, and
        must not overlap. Raises ``BadRequest``, ``ShapeMismatch``."""
        self.device.check_owner(source)
        self.device.check_owner(destination)
        if destination.nbytes != source.nbytes:
            raise ShapeMismatch(
                f"cannot copy {source!r} to {destination!r}: {source.nbytes} bytes against {destination.nbytes}"
            )
        self.queue.copy(source.dense_address("copy"), destination.dense_address("copy"), source.nbytes)
        destination.known.forget()
        self._keep(source, destination)

    def fill(self, destination: Buffer, byte: int) -> None:
        """Sets every byte of a device array, or of a view whose elements are contiguous. Raises ``BadRequest``."""
        self.device.check_owner(destination)
        self.queue.fill(destination.dense_address("fill"), byte, destination.nbytes)
        destination.known.forget()
        self._keep(destination)

    def _keep(self, *buffers: Buffer) -> None:
        if self._graph is not None:
            self._graph.keep(*buffers)

    @contextmanager
    def capture(self) -> Iterator[Graph]:
        """Launches, copies and fills inside are kept in a graph instead of executed."""
        with self.queue.record() as recording:
            self._graph = graph = Graph(self, recording)
            try:
                yield graph
            finally:
                self._graph = None

    def callback(self, function: Callable[[], None]) -> None:
        """Calls ``function`` on the host when everything before has finished, and holds what comes after until it has
        returned. It runs in a thread that waits for the device, and must not wait for this stream itself."""
        self.queue.callback(function)

    def record(self) -> Event:
        """An event behind everything submitted so far."""
        return Event(self.queue, Buffer.of(self.device, np.zeros(FENCE_BYTES, np.uint8)))

    def wait(self, event: Event) -> None:
        """Holds this stream (not the caller) until an event of another stream of the device has happened. Raises
        ``BadRequest`` for an event of another device."""
        if not isinstance(event, Event):
            raise UnsupportedType(f"{event!r} is no event; record() of another stream makes one")
        self.queue.wait_fence(event.fence)

    def batch(self) -> AbstractContextManager[None]:
        """What is submitted inside reaches the device by one doorbell."""
        return self.queue.batch()

    @contextmanager
    def timed(self) -> Iterator[Timing]:
        """Work submitted inside starts with one doorbell; on leaving it is done and its cycles are known."""
        self.synchronize()
        timing, has_cycles = Timing(), self.device.driver.has_cycles
        with self.batch():
            yield timing
            event = self.record()
        event.wait()
        if has_cycles:
            timing.measured = event.time - self.queue.doorbell_time

    @contextmanager
    def counted(self) -> Iterator[Count]:
        """Like ``timed``, with all performance counters of the device."""
        self.synchronize()
        before = self.device.driver.counters()
        count = Count(counters=before - before)
        with self.timed() as timing:
            yield count
        count.counters = self.device.driver.counters() - before
        count.measured = timing.measured

    def check_alive(self) -> None:
        """A stream lives as long as its device."""

    def __repr__(self) -> str:
        captures = "" if self._graph is None else f", captures {self._graph!r}"
        return f"Stream({self.queue!r}{captures})"

    def synchronize(self, timeout: int | None = None) -> None:
        """Returns when everything submitted so far has finished. Raises the error of whatever failed."""
        self.device.context.check()
        drain(self.queue, timeout)
