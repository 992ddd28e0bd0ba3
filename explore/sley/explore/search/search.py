"""How designs are chosen: in rounds, each chosen when what the rounds before cost is known.

What is chosen depends on the space, the seed and the costs alone, not on who was done first. So a search that begins
anew goes the same way, and finds what it has run already among the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from sley.explore.space.space import Point

Costs = tuple[float, ...] | None
"""A number for each objective, less is better; None for a design that has none."""


class Search(Protocol):
    """Chooses designs."""

    def rounds(self) -> Iterator[list[Point]]:
        """Points to cost, a round at a time; ``costs`` is called with what a round cost before the next is asked
        for."""
        ...

    def costs(self, found: Sequence[Costs]) -> None:
        """What the designs of the last round cost, in their order."""
        ...
