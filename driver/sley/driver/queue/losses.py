"""Packets of a queue that were given up, and to which error."""

from __future__ import annotations

from bisect import bisect_right

from sley.abi.errors import SleyError


class Losses:
    """What was lost of a queue, by position.

    Attributes: ``unseen``: the error of an earlier packet or callback that nobody has seen yet.
    """

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, SleyError]] = []
        self.unseen: SleyError | None = None

    def add(self, first: int, end: int, error: SleyError) -> None:
        """The packets in ``first .. end - 1``, which come after all that were lost before, are lost."""
        self._ranges.append((first, end, error))

    def error(self, position: int) -> SleyError | None:
        """The fault or reset for which the packet was given up, if it was."""
        index = bisect_right(self._ranges, position, key=lambda part: part[0]) - 1
        if index >= 0 and position < self._ranges[index][1]:
            return self._ranges[index][2]
        return None

    def check(self, position: int) -> None:
        """Raises the error to which the packet was lost, if it was."""
        error = self.error(position)
        if error is not None:
            if self.unseen is error:
                self.unseen = None
            raise error

    def raise_unseen(self) -> None:
        """Raises the error that nobody has seen yet."""
        error, self.unseen = self.unseen, None
        if error is not None:
            raise error
