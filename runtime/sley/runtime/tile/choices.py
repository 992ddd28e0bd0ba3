"""Constants that the compiler chooses, and the grid that follows from them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sley.driver import BadRequest
from sley.runtime.tile.operations import TileError

MOST_CANDIDATES = 512
"""More are an error: each takes a millisecond."""
Sides = tuple[int, int, int]
Grid = int | Sequence[int] | Callable[..., int | Sequence[int]]


@dataclass(frozen=True)
class Choice:
    """Values of a constant, of which the compiler takes the one with the least cycles."""

    values: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"choice({', '.join(map(repr, self.values))})"


def choice(*values: Any) -> Any:
    """Values of a constant that the compiler chooses from: ``rows=tile.choice(16, 32, 64)`` in a kernel's signature.
    A value that is given at the launch is taken as it is. Raises ``TileError``."""
    if not values:
        raise TileError("choice() of nothing; give the values to choose from: choice(16, 32, 64)")
    return Choice(tuple(dict.fromkeys(values)))


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up: the blocks of b that a has."""
    return -(-a // b)


def even(size: int, most: int, multiple: int = 1) -> int:
    """The extent of equal blocks of ``size`` elements, as few as those of ``most`` elements are, and a multiple of
    ``multiple``: 197 elements are two blocks of 128 and 69, or of 99 each. A block at an edge is computed as if it
    were whole, so equal ones waste less. Raises ``TileError`` for numbers below 1."""
    if min(size, most, multiple) < 1:
        raise TileError(f"even({size}, {most}, {multiple}): sizes are 1 or more")
    return cdiv(cdiv(size, cdiv(size, most)), multiple) * multiple


def candidates(kernel: str, constants: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The constants with every combination of choices. Raises ``TileError`` if they are too many."""
    names = [name for name, value in constants.items() if isinstance(value, Choice)]
    count = math.prod(len(constants[name].values) for name in names)
    if count > MOST_CANDIDATES:
        raise TileError(f"{kernel} has {count} combinations of choices; at most {MOST_CANDIDATES} are tried")
    return [
        {**constants, **dict(zip(names, values, strict=True))}
        for values in product(*(constants[name].values for name in names))
    ]


def sides(grid: Grid, kernel: str, constants: Mapping[str, Any]) -> Sides:
    """The numbers of blocks along x, y and z. Raises ``BadRequest``."""
    if callable(grid):
        wanted = inspect.signature(grid).parameters
        unknown = [name for name in wanted if name not in constants]
        if unknown:
            raise BadRequest(
                f"the grid of {kernel} takes {', '.join(unknown)}; its constants are {', '.join(constants) or 'none'}"
            )
        grid = grid(**{name: constants[name] for name in wanted})
    given = (grid,) if isinstance(grid, int) else tuple(grid)
    if not 1 <= len(given) <= 3 or any(not isinstance(side, int) or side < 1 for side in given):
        raise BadRequest(f"grid is {grid!r}; it is one to three numbers of blocks, each 1 or more")
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z
