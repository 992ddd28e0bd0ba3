"""Points in a stream: done or not, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sley.abi.packets import FENCE_BYTES

if TYPE_CHECKING:
    from sley.runtime.device.stream import Stream


class Event:
    """A fence with a place of its own for its time stamp; made by ``Stream.record``."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._place = stream.device.array(np.zeros(FENCE_BYTES, np.uint8))
        self.fence = stream.queue.fence(self._place.address)

    @property
    def address(self) -> int:
        """Where the device writes the sequence number and the time."""
        return self._place.address

    @property
    def done(self) -> bool:
        """Whether everything before the event has finished."""
        return self.fence.done

    def wait(self, timeout: int | None = None) -> None:
        """Returns when everything before the event has finished; see ``Fence.wait``."""
        self.fence.wait(timeout)

    @property
    def time(self) -> int:
        """Device cycle of the event; waits for it."""
        return self.fence.time

    def since(self, earlier: Event) -> int:
        """Cycles from another event to this one."""
        return self.time - earlier.time
