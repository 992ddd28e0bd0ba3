"""The rule by which queues take turns."""

from collections.abc import Collection, Sequence

from sley.abi.registers import PATIENCE, PRIORITY_BITS

_OVERDUE = 1 << PRIORITY_BITS


class Turn:
    """Who goes next: overdue queues, then the highest priority, round robin within a level."""

    def __init__(self, queues: int):
        self._passed = [0] * queues
        self._last: dict[int, int] = {}

    def next(self, asking: Collection[int], priorities: Sequence[int]) -> int:
        """Which of the queues that ask is served next."""
        return self._choose(asking, priorities)[1]

    def _choose(self, asking: Collection[int], priorities: Sequence[int]) -> tuple[int, int]:
        level = {k: _OVERDUE if self._passed[k] >= PATIENCE else priorities[k] for k in asking}
        highest = max(level.values())
        last = self._last.get(highest, -1)
        return highest, min((k for k in asking if level[k] == highest), key=lambda k: (k <= last, k))

    def take(self, asking: Collection[int], priorities: Sequence[int]) -> int:
        """Serves one of the queues that ask."""
        highest, served = self._choose(asking, priorities)
        self._last[highest] = served
        for k in asking:
            self._passed[k] += 1
        self._passed[served] = 0
        return served
