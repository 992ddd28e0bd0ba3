"""Random pauses on a channel of AXI."""

import random
from collections.abc import Iterator


def random_gaps(seed: int, chance: float = 0.4, longest: int = 1) -> Iterator[bool]:
    """Whether a channel pauses, cycle by cycle, for ``set_pause_generator`` of cocotbext-axi.

    Parameters
    ----------
    seed
        The same seed gives the same pauses.
    chance
        Of a pause to begin in a cycle without one, 0 to below 1.
    longest
        Cycles of the longest pause; each length from 1 on is as likely.

    Raises
    ------
    ValueError
        If a channel would never move, or a pause has no length.
    """
    if not 0 <= chance < 1:
        raise ValueError(f"chance is {chance}; it must be in 0..1, without 1: the channel would never move")
    if longest < 1:
        raise ValueError(f"longest is {longest}; it must be at least 1 cycle")
    draw = random.Random(seed)
    while True:
        if draw.random() < chance:
            yield from [True] * draw.randint(1, longest)
        yield False
