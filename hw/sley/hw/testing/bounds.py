"""Coverage of bounds: on which side a number is outside of a range, and how far.

    COVERAGE = Coverage("Store", {"last row": [("chunks", *reach) for reach in REACHES]})

    COVERAGE.hit("last row", ("chunks", *reach(row, rows)))      # in a test
    row = reached(rng, "above", "within twice all", rows)        # a number of that bin

A comparator that is wrong is wrong in one octave of the distance: it has a bit too few or too many, or is off by one.
"""

import random
from itertools import product

SIDES = ("below", "above")
DISTANCES = ("just inside", "by one", "within all", "within twice all", "far")
REACHES = list(product(SIDES, DISTANCES))


def high_bits(size: int, bits: int = 32) -> list[int]:
    """Numbers of one bit that are outside: each bit of an operand counts."""
    return [1 << bit for bit in range((size - 1).bit_length(), bits)]


def _distances(size: int, far: int) -> dict[str, range]:
    """How far from the last number inside, which is 0; ``far``: what nothing is beyond of."""
    return {
        "just inside": range(0, 1),
        "by one": range(1, 2),
        "within all": range(2, size + 1),
        "within twice all": range(size + 1, 2 * size + 1),
        "far": range(2 * size + 1, far + 1),
    }


def reach(number: int, size: int) -> tuple[str, str] | None:
    """The bin of a number for a range from 0 to below ``size``; none if it is well inside."""
    side, distance = ("below", -number) if 2 * number < size - 1 else ("above", number - (size - 1))
    found = [name for name, distances in _distances(size, 1 << 64).items() if distance in distances]
    return (side, found[0]) if found else None


def reached(rng: random.Random, side: str, how: str, size: int, far: int) -> int:
    """A number of that bin, at most ``far`` from the range, its distance one of the ends of the bin or any."""
    distances = _distances(size, far)[how]
    distance = rng.choice([distances[0], distances[-1], rng.choice(distances)])
    return -distance if side == "below" else size - 1 + distance
