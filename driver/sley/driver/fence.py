"""Fences: how software knows that a queue has come as far as some packet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sley.abi.packets import FENCE_BYTES
from sley.driver.errors import WaitTimeout

if TYPE_CHECKING:
    from sley.driver.queue import Queue

_SETTLE_CYCLES = 16


class Fence:
    """A fence packet on its way: the device writes ``sequence`` and the time to ``address``.

    Sequence numbers of a queue only grow, so one word of memory serves any number of fences: a fence is done when
    the word is at least its number.
    """

    def __init__(self, queue: Queue, position: int, sequence: int, address: int) -> None:
        self.queue = queue
        self.position = position
        self.sequence = sequence
        self.address = address
        self._time: int | None = None

    def _read(self) -> tuple[int, int]:
        data = self.queue.driver.transport.read_memory(self.address, FENCE_BYTES)
        return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little")

    @property
    def done(self) -> bool:
        """Whether the device has passed the fence. Raises the error if the fence was lost to a fault or a reset."""
        self.queue.check(self.position)
        return self._passed()

    def _passed(self) -> bool:
        return self._time is not None or self._read()[0] >= self.sequence

    def wait(self, timeout: int | None = None) -> None:
        """Returns when the device has passed the fence.

        Without ``timeout`` it waits as long as the device makes progress, else at most that many cycles. Raises
        ``QueueFault``, ``DeviceHang`` or ``WaitTimeout``.
        """
        queue = self.queue
        queue.ring_doorbell()
        if not queue.driver.wait(lambda: queue.lost(self.position) or self._passed(), timeout=timeout):
            raise WaitTimeout(f"fence {self.sequence} of queue {queue.index} not reached within {timeout} cycles")
        queue.check(self.position)

    @property
    def time(self) -> int:
        """Device cycle in which the fence was written; waits for it. Read it before ``address`` is used again."""
        if self._time is None:
            self.wait()
            # The time lies behind the sequence number: a narrow bus writes it later.
            self.queue.driver.wait(lambda: self.queue.finished(self.position), step=_SETTLE_CYCLES)
            self.queue.check(self.position)
            self._time = self._read()[1]
        return self._time
