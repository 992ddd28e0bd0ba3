"""What of a program is not what it computes: when and where, in the words of loop transformation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sley.runtime.tile.operations import TileError
from sley.runtime.tile.passes.slots import MOST


@dataclass(frozen=True)
class Schedule:
    """How a kernel is run. Results are the same in every bit for each of them.

    Parameters
    ----------
    buffer: most slots of a tile, 1, 2 or 4: with 1 nothing is loaded ahead. order: axes of the grid, the outermost
        loop over blocks first. prefetch: whether loads, and products of what is loaded, are issued a round ahead in
        loops that gain by it. gang: whether cores that take blocks side by side load together what is the same for
        them. resident: whether what rounds of a loop have in common, and the pieces that another loop would load again
        and again, stay on the chip where that takes fewer cycles. unroll: by the names of loops' variables, how many
        rounds become one.

    Raises ``TileError`` for what is none.
    """

    buffer: int = MOST
    order: tuple[int, ...] = (2, 1, 0)
    prefetch: bool = True
    gang: bool = True
    resident: bool = True
    unroll: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.buffer not in (1, 2, MOST):
            raise TileError(f"buffer is {self.buffer!r}; tiles have 1, 2 or {MOST} slots")
        if sorted(self.order) != [0, 1, 2]:
            raise TileError(f"order is {self.order!r}; it names the axes 0, 1 and 2 of the grid once each")
        for name, rounds in self.unroll.items():
            if not isinstance(rounds, int) or rounds < 1:
                raise TileError(f"unroll of {name} is {rounds!r}; it is a number of rounds, 1 or more")

    def __hash__(self) -> int:
        return hash((self.buffer, self.order, self.prefetch, self.gang, self.resident, *sorted(self.unroll.items())))


AUTOMATIC = Schedule()
"""What the compiler does on its own."""
