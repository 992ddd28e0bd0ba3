"""Rows of a memory of the core that tiles are in."""

from __future__ import annotations

from dataclasses import dataclass

from sley.abi.instructions import Space
from sley.runtime.tile.ir import Op


@dataclass(eq=False)
class Buffer:
    """Rows of a memory. Attributes: ``slots``: how often they are there, one behind the other. ``loop``: whose rounds
    take the slots in turn, if there is more than one. ``first``: row."""

    space: Space
    shape: tuple[int, int]
    rows: int
    loop: Op | None
    line: int
    slots: int = 1
    first: int = 0

    def alike(self, other: Buffer) -> bool:
        """Whether it could be in the same place as another one."""
        return (self.space, self.rows, self.loop) == (other.space, other.rows, other.loop)

    @property
    def all_rows(self) -> int:
        """Of all slots together."""
        return self.rows * self.slots
