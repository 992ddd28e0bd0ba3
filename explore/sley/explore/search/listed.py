"""Designs that are known from the beginning: all of a grid, or some that are drawn."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from sley.explore.search.search import Costs
from sley.explore.space.space import Point, Space


class Listed:
    """Designs that are known from the beginning, in one round."""

    def __init__(self, points: list[Point]) -> None:
        self._points = points

    def rounds(self) -> Iterator[list[Point]]:
        yield self._points

    def costs(self, found: Sequence[Costs]) -> None:
        """Nothing follows from them."""


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
