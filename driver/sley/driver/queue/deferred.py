"""Actions that wait until work in flight has finished."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sley.driver.errors import DeviceCorrupt
from sley.driver.queue.ring import Ring


@dataclass(eq=False)
class _Action:
    """``marks``: queues that were at work, and how far each had been submitted."""

    marks: list[tuple[Ring, int]]
    function: Callable[[], object]


class Deferred:
    """Actions of one context, in the order in which they are done.

    Parameters: ``failed``: hears what an action raised that was done later than its ``add``.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._actions: deque[_Action] = deque()
        self._failed = failed

    def __len__(self) -> int:
        return len(self._actions)

    def add(self, queues: Iterable[Ring], function: Callable[[], object]) -> None:
        """Another action, for when everything that these queues got so far has finished: now, if it has."""
        action = _Action([(queue, queue.head) for queue in queues if not queue.idle], function)
        self._actions.append(action)
        self._settle(action)

    def settle(self) -> None:
        """Does what waited for work that has finished by now, as the chip's registers say: the read index in memory
        could have been written by the context's own work. Raises ``DeviceCorrupt`` if it holds nonsense."""
        self._settle(None)

    def _settle(self, own: _Action | None) -> None:
        """``own``: the action of the caller, who hears what it raises."""
        while self._actions and all(queue.retired(head - 1) for queue, head in self._actions[0].marks):
            action = self._actions.popleft()
            try:
                action.function()
            except DeviceCorrupt:
                raise
            except Exception as error:  # not the concern of whoever happens to find the work finished
                if action is own:
                    raise
                self._failed(error)
