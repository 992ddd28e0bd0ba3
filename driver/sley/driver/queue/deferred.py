"""Actions that wait until work in flight has finished."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from sley.driver.queue.ring import Ring

Marks = list[tuple[Ring, int]]
"""Queues that were at work, and how far each had been submitted."""


class Deferred:
    """Actions of one context, in the order in which they are done."""

    def __init__(self) -> None:
        self._actions: deque[tuple[Marks, Callable[[], object]]] = deque()

    def __len__(self) -> int:
        return len(self._actions)

    def add(self, queues: Iterable[Ring], action: Callable[[], object]) -> None:
        """Another action, for when everything that these queues got so far has finished."""
        self._actions.append(([(queue, queue.head) for queue in queues if not queue.idle], action))

    def settle(self) -> None:
        """Does what waited for work that has finished by now, as the chip's registers say: the read index in memory
        could have been written by the context's own work."""
        while self._actions and all(queue.retired(head - 1) for queue, head in self._actions[0][0]):
            self._actions.popleft()[1]()
