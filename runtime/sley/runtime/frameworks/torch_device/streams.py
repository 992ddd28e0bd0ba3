"""Streams and events of the device under the names that PyTorch's other devices have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sley.driver import BadRequest
from sley.runtime import device as runtime
from sley.runtime.frameworks.torch_device.engine import device

_next = [0]


class Event:
    """A point in a stream: ``record`` sets it. Its time is a cycle of the device, so two have ``cycles`` between them.

    Parameters are those of ``torch.cuda.Event``, of which none changes anything here.
    """

    def __init__(self, enable_timing: bool = True, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise BadRequest("an event for other processes; the device sley belongs to one")
        self._event: runtime.event.Event | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Sets it behind all work of a stream so far."""
        self._event = (stream or current_stream()).queue.record()

    def query(self) -> bool:
        """Whether the work before it is done; that of none is."""
        return self._event is None or self._event.done

    def synchronize(self) -> None:
        """Returns when the work before it is done."""
        if self._event is not None:
            self._event.wait()

    def wait(self, stream: Stream | None = None) -> None:
        """Makes a stream wait for it."""
        (stream or current_stream()).wait_event(self)

    def cycles(self, end: Event) -> int:
        """Cycles of the device from here to another event; waits for both. Raises ``BadRequest``."""
        if self._event is None or end._event is None:
            raise BadRequest("cycles between events of which one was not recorded")
        return end._event.since(self._event)


class Stream:
    """Work in order, on one of the device's queues; ``with s:``, or ``torch.sley.stream(s)``, sends work there.

    There are as many queues as ``device().streams``; the first one is the default stream, the others are handed out in
    turn. Memory that is freed is used again when the work of all streams so far is done.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, number: int | None = None) -> None:
        streams = _device().streams
        if number is None:
            number = 0 if len(streams) == 1 else 1 + _next[0] % (len(streams) - 1)
            _next[0] += 1
        self.number, self.queue = number, streams[number]
        self._contexts: list[AbstractContextManager[Any]] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return f"torch.sley.Stream({self.number})"

    def __enter__(self) -> Stream:
        """Sends the work inside to it."""
        self._contexts.append(_device().using(self.queue))
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._contexts.pop().__exit__(*error)

    def synchronize(self) -> None:
        """Returns when its work is done."""
        self.queue.synchronize()

    def query(self) -> bool:
        """Whether its work is done."""
        return not self.queue.queue.pending

    def record_event(self, event: Event | None = None) -> Event:
        """An event behind all its work so far."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """What comes now waits for an event."""
        if event._event is not None:
            self.queue.wait(event._event)

    def wait_stream(self, stream: Stream) -> None:
        """What comes now waits for all work of another stream so far."""
        self.wait_event(stream.record_event())


def _device() -> runtime.device.Device:
    return device()


def default_stream(index: Any = None) -> Stream:
    """The first one."""
    return Stream(number=0)


def current_stream(index: Any = None) -> Stream:
    """That of ``stream``, or the default one."""
    return Stream(number=device().streams.index(device().stream))


def set_stream(stream: Stream) -> None:
    """Sends the work from now on to a stream. Raises ``BadRequest`` for one of ``torch.Stream``."""
    if not isinstance(stream, Stream):
        raise BadRequest(f"{stream} is no stream of torch.sley: make one with torch.sley.Stream()")
    device().stream = stream.queue


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Sends the work inside to a stream."""
    if stream is None:
        yield
        return
    with device().using(stream.queue):
        yield
