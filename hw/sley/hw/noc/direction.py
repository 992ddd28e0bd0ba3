"""The sides of a router, and the turns that a packet may take from one to another."""

from collections.abc import Iterable
from enum import Enum


class Direction(Enum):
    """A side of a router; the value is the step in x and y to the neighbour there."""

    LOCAL = (0, 0)
    NORTH = (0, -1)
    EAST = (1, 0)
    SOUTH = (0, 1)
    WEST = (-1, 0)

    @property
    def opposite(self) -> "Direction":
        return Direction((-self.value[0], -self.value[1]))


Turn = tuple[Direction, Direction]
"""The side that a packet comes from, and the one that it goes to."""


def may_turn(came_from: Direction, goes_to: Direction) -> bool:
    """Whether dimension-order routing, x first, can take a packet from one side to the other: it never goes back,
    and once it moves north or south it never moves east or west again."""
    if came_from is goes_to:
        return False
    return came_from.value[1] == 0 or goes_to.value[0] == 0


def all_turns(sides: Iterable[Direction] = Direction) -> list[Turn]:
    """Every turn between these sides that dimension order allows."""
    among = list(sides)
    return [(side, to) for side in among for to in among if may_turn(side, to)]
