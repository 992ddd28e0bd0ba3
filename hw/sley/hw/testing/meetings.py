"""Coverage of what meets in a block: each kind of item behind each kind, while the earlier one is still inside.

    COVERAGE = Coverage("Load", {"meets": meetings(KINDS, ("LOAD that ends", "SET", "later"))})

    kinds = every_pair(KINDS, rng)                               # in a test: all of them, in a random order
    count_meetings(COVERAGE, "meets", kinds, gaps, entered, left)

That a kind was offered says little: a queue or a pipeline is wrong about two items, of which one has not left yet. The
gap is that in front of the later one, cycles in which nothing was offered; without one it comes as soon as it may.
"""

import random
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import TypeVar

from sley.hw.testing.coverage import Coverage

Kind = TypeVar("Kind", bound=Hashable)
GAPS = ("at once", "later")


def meetings(kinds: Iterable[Hashable], *never: tuple[Hashable, ...]) -> list[tuple[Hashable, ...]]:
    """Bins (earlier, later, gap), without those that begin with one of ``never``."""
    kinds = tuple(kinds)
    return [
        bin_ for bin_ in product(kinds, kinds, GAPS) if not any(bin_[: len(excluded)] == excluded for excluded in never)
    ]


def every_pair(kinds: Sequence[Kind], rng: random.Random) -> list[Kind]:
    """A sequence in which each kind comes right behind each kind once, itself too, in a random order."""
    left = {kind: rng.sample(list(kinds), len(kinds)) for kind in kinds}
    walk, circuit = [rng.choice(list(kinds))], []
    while walk:  # Hierholzer: each kind is left as often as it is reached, so all ways close to a circuit
        if left[walk[-1]]:
            walk.append(left[walk[-1]].pop())
        else:
            circuit.append(walk.pop())
    return circuit[::-1]


def count_meetings(
    coverage: Coverage,
    point: str,
    kinds: Sequence[Hashable],
    gaps: Mapping[int, int],
    entered: Sequence[int],
    left: Sequence[int],
) -> None:
    """Hits the bin of each item that finds the one before it inside.

    ``gaps``: cycles without an offer in front of some items; ``entered``, ``left``: the cycle of each item's acceptance
    and of its end, as ``Traffic`` has them.
    """
    for at, (earlier, later) in enumerate(pairwise(kinds), 1):
        if entered[at] <= left[at - 1]:
            coverage.hit(point, (earlier, later, GAPS[bool(gaps.get(at))]))
