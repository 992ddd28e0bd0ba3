"""Work recorded once and launched many times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from sley.driver import BadRequest, Queue, Recording
from sley.runtime.device.arguments import Argument, check_bounds, written
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.client import Client
from sley.runtime.device.program import Program


class Target(Protocol):
    """Where a graph is captured and launched: a stream."""

    @property
    def device(self) -> Client: ...

    @property
    def queue(self) -> Queue: ...

    def words(self, program: Program, values: Sequence[Argument]) -> list[int]: ...

    def timed(self) -> AbstractContextManager[Timed]: ...


class Timed(Protocol):
    """Cycles that are known behind the work."""

    @property
    def cycles(self) -> int: ...


@dataclass
class Launch:
    """A launch in a graph. ``index``: of its packet. ``values``: its arguments now."""

    program: Program
    index: int
    values: list[Argument]


class Graph:
    """Launches, copies and fills in the order in which they were captured; made by ``Stream.capture``.

    It keeps the arrays that it uses. ``launch`` costs one packet and one doorbell, however long it is.

    Attributes: ``launches``: those in it, in order, for ``update``.
    """

    def __init__(self, stream: Target, recording: Recording) -> None:
        self._stream, self._recording = stream, recording
        self._kept: list[Buffer] = []
        self.launches: list[Launch] = []

    def __len__(self) -> int:
        """Packets in the graph."""
        return len(self._recording)

    def __repr__(self) -> str:
        state = ", freed" if self.freed else ""
        return f"Graph({len(self)} packets, {len(self.launches)} of them launches{state})"

    @property
    def freed(self) -> bool:
        """Whether its memory was given back."""
        return self._recording.closed

    def _arrays(self) -> Iterator[Buffer]:
        """All that it reads or writes."""
        yield from self._kept
        for launch in self.launches:
            yield from (value for value in launch.values if isinstance(value, Buffer))

    def written(self) -> Iterator[Buffer]:
        """Those that it may write."""
        yield from self._kept
        for launch in self.launches:
            yield from written(launch.program, launch.values)

    def keep(self, *buffers: Buffer) -> None:
        """Holds arrays that the graph uses."""
        self._kept += buffers

    def update(self, launch: int, args: Mapping[str, Argument] | Sequence[Argument]) -> None:
        """Other arguments for a launch, by its number in ``launches``; with names, those not named stay. Launches of
        the graph so far are not affected, even if they have not run yet. A view takes the place of an array with the
        same strides alone, for which the program was made. Raises ``BadRequest``."""
        if not 0 <= launch < len(self.launches):
            raise BadRequest(f"launch {launch} of a graph that has {len(self.launches)}")
        node = self.launches[launch]
        if isinstance(args, Mapping):
            unknown = set(args) - set(node.program.args)
            if unknown:
                raise BadRequest(f"{node.program.name} has no argument {', '.join(sorted(unknown))}")
            values = [args.get(name, old) for name, old in zip(node.program.args, node.values, strict=True)]
        else:
            values = list(args)
        for old, new in zip(node.values, values, strict=False):
            if isinstance(old, Buffer) and isinstance(new, Buffer):
                self._check_strides(node.program, old, new)
        self._recording.patch(node.index, self._stream.words(node.program, values))
        node.values = values

    def _check_strides(self, program: Program, old: Buffer, new: Buffer) -> None:
        """A program was made for the strides of the array that it was captured with."""
        if (old.shape, old.strides) != (new.shape, new.strides) and not (old.contiguous and new.contiguous):
            raise BadRequest(
                f"{program.name} was captured with {old!r}; {new!r} cannot take its place: capture it again, or give "
                f"an array of shape {old.shape} with strides {old.strides}"
            )

    def launch(self, stream: Target | None = None) -> None:
        """Submits everything in it to the stream it was captured on, or another one of the device. Raises
        ``BufferFreed`` if one of its arrays was freed, ``BadRequest`` if one that has a bound (``Program.bounds``)
        holds more."""
        target = stream or self._stream
        if target.device is not self._stream.device:
            raise BadRequest("the graph was captured on another device")
        for array in self._arrays():
            target.device.check_owner(array)
        for launch in self.launches:
            check_bounds(launch.program, launch.values)
        target.queue.submit(self._recording)
        for array in self.written():
            array.known.forget()

    def cycles(self) -> list[int]:
        """Runs the graph launch by launch, on the stream it was captured on; the cycles of each, from its own doorbell
        to the fence behind it. Copies and fills in it are left out."""
        found = []
        for number in range(len(self.launches)):
            with self._stream.timed() as timing:
                self.launch_one(number)
            found.append(timing.cycles)
        return found

    def launch_one(self, launch: int) -> None:
        """Submits a single launch, by its number in ``launches``, to the stream that the graph was captured on. It
        finds in memory what those before it have left. Raises ``BadRequest``."""
        if not 0 <= launch < len(self.launches):
            raise BadRequest(f"launch {launch} of a graph that has {len(self.launches)}")
        part = self._recording.part(self.launches[launch].index)
        self._stream.queue.submit(part)
        part.close()

    def free(self) -> None:
        """Gives its memory back, after all work submitted so far."""
        self._recording.close()
        self._kept.clear()
        self.launches.clear()
