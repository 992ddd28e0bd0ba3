"""Searches by name."""

from __future__ import annotations

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.explore.search.listed import Listed, sampled
from sley.explore.search.search import Search
from sley.explore.space.space import Space

GRID, RANDOM, BAYESIAN, EVOLUTIONARY = SEARCHES = ("grid", "random", "bayesian", "evolutionary")
DESIGNS = 100
"""Designs where a search has no end of its own."""


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
