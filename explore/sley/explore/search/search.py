"""How designs are chosen: in rounds, each chosen when what the rounds before cost is known.

What is chosen depends on the space, the seed and the costs alone, not on who was done first. So a search that begins
anew goes the same way, and finds what it has run already among the results.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Protocol

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.explore.space.space import Point, Space

GRID, RANDOM, BAYESIAN, EVOLUTIONARY = SEARCHES = ("grid", "random", "bayesian", "evolutionary")
DESIGNS = 100
"""Designs where a search has no end of its own."""

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


class Listed:
    """Designs that are known from the beginning, in one round."""

    def __init__(self, points: list[Point]) -> None:
        self._points = points

    def rounds(self) -> Iterator[list[Point]]:
        yield self._points

    def costs(self, found: Sequence[Costs]) -> None:
        """Nothing follows from them."""


def search_of(name: str, space: Space, objectives: int, designs: int | None, seed: int) -> Search:
    """A search by its name. ``objectives``: how many. ``designs``: how many, all of a grid if not given. Raises
    ``BadRequest``."""
    if name not in SEARCHES:
        raise BadRequest(f"no search {name!r}; there are {', '.join(SEARCHES)}")
    if designs is not None and designs < 1:
        raise BadRequest(f"{designs} designs; give 1 or more")
    if name == GRID:
        return Listed(list(space)[:designs])
    count = min(designs or DESIGNS, space.size)
    if name == RANDOM:
        return Listed(sampled(space, count, seed))
    try:
        from sley.explore.search.guided import Guided
    except ImportError as error:
        raise BadRequest(f"search {name} needs optuna, which is not installed ({error}): {extra('explore')}") from None
    return Guided(name == BAYESIAN, space, objectives, count, seed)


def sampled(space: Space, count: int, seed: int) -> list[Point]:
    """Different points, each as likely."""
    names, found = list(space.values), []
    for number in random.Random(seed).sample(range(space.size), count):
        point = {}
        for name in reversed(names):
            number, place = divmod(number, len(space.values[name]))
            point[name] = space.values[name][place]
        found.append({name: point[name] for name in names})
    return found
