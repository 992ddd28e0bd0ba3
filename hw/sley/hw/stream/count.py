"""Counting up and down with one adder."""

from amaranth import Cat, Value


def step(up: Value, down: Value, width: int) -> Value:
    """What to add to a counter of ``width`` bits: 1 for ``up``, -1 for ``down``, nothing for both or none."""
    return Cat(up ^ down, (down & ~up).replicate(width - 1))
