"""Streams and events where the part in C++ is missing: PyTorch's own do not know the device there."""

from __future__ import annotations

from typing import Any

from sley.runtime.device.event import Event as DeviceEvent
from sley.runtime.frameworks.torch_device import queues


class PlainEvent:
    """A point in a stream, with the methods of ``torch.Event``."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False) -> None:
        self.place: DeviceEvent | None = None
        self._timed = enable_timing

    def record(self, stream: PlainStream | None = None) -> None:
        """Sets it behind all work of a stream so far."""
        self.place = queues.record(0, queues.current(0) if stream is None else stream.stream_id)

    def query(self) -> bool:
        """Whether the work before it is done; that of none is."""
        return self.place is None or queues.happened(self.place)

    def synchronize(self) -> None:
        """Returns when the work before it is done."""
        if self.place is not None:
            queues.wait(self.place)

    def wait(self, stream: PlainStream | None = None) -> None:
        """Makes a stream wait for it."""
        if self.place is not None:
            queues.hold(0, queues.current(0) if stream is None else stream.stream_id, self.place)

    def elapsed_time(self, end_event: PlainEvent) -> float:
        """Milliseconds from here to another event. Raises ``ValueError``."""
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.place is None or end_event.place is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return queues.milliseconds(self.place, end_event.place)


class PlainStream:
    """Work in order on one of the device's queues, with the methods of ``torch.Stream``."""

    def __init__(self, device: Any = None, priority: int = 0, *, stream_id: int | None = None) -> None:
        self.stream_id = queues.new(0) if stream_id is None else stream_id
        self._before: list[int] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlainStream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)

    def __repr__(self) -> str:
        return f"torch.sley.Stream({self.stream_id})"

    def __enter__(self) -> PlainStream:
        """Sends the work inside to it."""
        self._before.append(queues.exchange(0, self.stream_id))
        return self

    def __exit__(self, *error: Any) -> None:
        queues.exchange(0, self._before.pop())

    def synchronize(self) -> None:
        """Returns when its work is done."""
        queues.synchronize(0, self.stream_id)

    def query(self) -> bool:
        """Whether its work is done."""
        return queues.idle(0, self.stream_id)

    def record_event(self, event: PlainEvent | None = None) -> PlainEvent:
        """An event behind all its work so far."""
        event = event or PlainEvent()
        event.record(self)
        return event

    def wait_event(self, event: PlainEvent) -> None:
        """What comes now waits for an event."""
        event.wait(self)

    def wait_stream(self, stream: PlainStream) -> None:
        """What comes now waits for all work of another stream so far."""
        self.wait_event(stream.record_event())
