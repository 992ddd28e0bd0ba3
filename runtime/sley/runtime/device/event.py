"""Points in a stream: done or not, and when."""

from __future__ import annotations

from sley.driver import NoCycleCounts, Queue
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.client import Client


class Event:
    """A fence whose sequence number and time stamp have a place in memory; made by ``Stream.record``.

    Parameters
    ----------
    queue: of the stream. place: ``FENCE_BYTES`` zeros, which the device overwrites.
    """

    def __init__(self, queue: Queue, place: Buffer) -> None:
        self._place = place
        self.fence = queue.fence(place.address)

    @property
    def device(self) -> Client:
        """Whose stream it is in."""
        return self._place.device

    @property
    def address(self) -> int:
        """Where the device writes the sequence number and the time."""
        return self._place.address

    def __repr__(self) -> str:
        return f"Event({self.fence!r})"

    @property
    def done(self) -> bool:
        """Whether everything before the event has finished."""
        return self.fence.done

    def wait(self, timeout: int | None = None) -> None:
        """Returns when everything before the event has finished; see ``Fence.wait``."""
        self.fence.wait(timeout)

    @property
    def time(self) -> int:
        """Device cycle of the event, on an engine without cycles a number that keeps the order; waits for it."""
        return self.fence.time

    def since(self, earlier: Event) -> int:
        """Cycles from another event to this one. Raises ``NoCycleCounts`` on an engine without cycles."""
        if not self.device.driver.has_cycles:
            raise NoCycleCounts
        return self.time - earlier.time
