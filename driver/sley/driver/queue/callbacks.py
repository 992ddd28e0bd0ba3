"""Functions of the host that a queue waits for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sley.driver.hardware.hardware import Hardware
from sley.driver.queue.fence import Fence

CALLBACK_BYTES = 8
"""The word that says how many callbacks have run."""


class Callbacks:
    """Those of one queue that have not run, in order.

    Each stands behind a fence, which says when it is due, and before a WAIT for the word in memory that counts
    callbacks: the queue goes on when the function has returned.

    Parameters: ``place``: physical address of that word.
    """

    def __init__(self, hardware: Hardware, place: int) -> None:
        self._hardware, self._place = hardware, place
        self._waiting: deque[tuple[Fence, int, Callable[[], None]]] = deque()
        self._taken: tuple[Fence, int, Callable[[], None]] | None = None
        self._last = 0

    def number(self) -> int:
        """The number of the next callback, from 1 on."""
        self._last += 1
        return self._last

    def add(self, fence: Fence, number: int, function: Callable[[], None]) -> None:
        """Another callback, which is due when the fence has passed."""
        self._waiting.append((fence, number, function))

    def take(self) -> tuple[int, Callable[[], None]] | None:
        """The next callback that is due: its number, and the function."""
        if not self._waiting or not self._waiting[0][0].passed():
            return None
        self._taken = self._waiting.popleft()
        _, number, function = self._taken
        return number, function

    def put_back(self) -> None:
        """The one taken last has not begun, and is due again."""
        assert self._taken is not None
        self._waiting.appendleft(self._taken)

    def release(self, number: int) -> None:
        """Lets the queue go on behind a callback."""
        self._hardware.transport.write_memory(self._place, number.to_bytes(CALLBACK_BYTES, "little"))

    def give_up(self) -> None:
        """None of them will run, and nothing waits for them."""
        self._waiting.clear()
        self.release(self._last)
