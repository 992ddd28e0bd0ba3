"""How large the blocks of one of Inductor's kernels are: the largest that have room, of equally large ones those with
the least cycles as the tile compiler thinks. None is run for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

MOST = 4096
"""Elements of the largest block that is tried."""
SIDES = {"XBLOCK": 1024, "YBLOCK": 256, "ZBLOCK": 256, "R0_BLOCK": 1024, "R1_BLOCK": 1024}
"""Elements along an axis at most."""
AXES = 2
"""Of tiles; blocks have one element along others."""

Blocks = dict[str, int]


def power(number: int) -> int:
    """The next power of two."""
    return 1 << max(number - 1, 0).bit_length()


def candidates(names: list[str], sizes: Mapping[str, int], whole: list[int]) -> Iterator[list[Blocks]]:
    """Blocks of equal size, larger ones first.

    Parameters
    ----------
    names: of the constants. sizes: of axes, ``x``, ``r0_`` and so on. whole: elements along axes of which each block
        has all.
    """
    ends = [min(SIDES[name], power(sizes[axis_of(name)])) for name in names]
    fixed = prod(power(size) for size in whole)
    budget = min(prod(ends), power(max(MOST // fixed, 1)))
    axes = AXES - sum(size > 1 for size in whole)
    choices = [[1 << bit for bit in range(end.bit_length())] for end in ends]
    while budget:
        equal = [made for made in product(*choices) if prod(made) == budget]
        yield [dict(zip(names, made, strict=True)) for made in equal if sum(side > 1 for side in made) <= axes]
        budget //= 2


def axis_of(name: str) -> str:
    """``x`` of ``XBLOCK``, ``r0_`` of ``R0_BLOCK``."""
    return name.removesuffix("BLOCK").lower()
