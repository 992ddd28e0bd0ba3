"""What of a program is not what it computes: when and where, in the words of loop transformation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sley.runtime.tile.operations import TileError
from sley.runtime.tile.passes.slots import MOST

NUMBERS = {"split": "rounds of the inner loop", "privatise": "copies", "unroll": "rounds"}
"""Words that give a number for a loop, and what of."""


@dataclass(frozen=True)
class Schedule:
    """How a kernel is run. Results are the same in every bit for each of them.

    Parameters
    ----------
    buffer: most slots of a tile, 1, 2 or 4: with 1 nothing is loaded ahead. order: axes of the grid, the outermost
        loop over blocks first. prefetch: whether loads, and products of what is loaded, are issued a round ahead in
        loops that gain by it. gang: whether cores that take blocks side by side load together what is the same for
        them. resident: whether what rounds of a loop have in common, and the pieces that another loop would load again
        and again, stay on the chip where that takes fewer cycles.
    split: by the names of loops' variables, how many rounds an inner loop takes; the one around it is over the name
        with ``_outer`` behind it. fuse: groups of such names; loops that follow each other become one, over the first
        name. privatise: by names, how many copies there are of what a loop carries, which its rounds take in turn.
        unroll: by names, how many rounds become one. Loops are split first, then fused, privatised and unrolled.

    Raises ``TileError`` for what is none.
    """

    buffer: int = MOST
    order: tuple[int, ...] = (2, 1, 0)
    prefetch: bool = True
    gang: bool = True
    resident: bool = True
    split: Mapping[str, int] = field(default_factory=dict)
    fuse: Sequence[Sequence[str]] = ()
    privatise: Mapping[str, int] = field(default_factory=dict)
    unroll: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.buffer not in (1, 2, MOST):
            raise TileError(f"buffer is {self.buffer!r}; tiles have 1, 2 or {MOST} slots")
        if sorted(self.order) != [0, 1, 2]:
            raise TileError(f"order is {self.order!r}; it names the axes 0, 1 and 2 of the grid once each")
        self._keep("order", tuple(self.order))
        for word in NUMBERS:
            self._keep(word, _numbers(word, getattr(self, word)))
        self._keep("fuse", _groups(self.fuse))

    def _keep(self, word: str, value: object) -> None:
        """A copy, so that schedules that say the same are equal, in their text too, and stay what they are."""
        object.__setattr__(self, word, value)

    def __hash__(self) -> int:
        words = (tuple(getattr(self, word).items()) for word in NUMBERS)
        return hash((self.buffer, self.order, self.prefetch, self.gang, self.resident, self.fuse, *words))


def _numbers(word: str, given: Mapping[str, int]) -> dict[str, int]:
    """What a word gives for each loop, by their names in order."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise TileError(f'{word} is {given!r}; it gives numbers by the names of loops\' variables: {word}={{"k": 2}}')
    for name, number in given.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise TileError(f"{word} of {name} is {number!r}; it is a number of {NUMBERS[word]}, 1 or more")
    return dict(sorted(given.items()))


def _groups(given: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Groups of names, each of two loops or more."""
    sequences = isinstance(given, Sequence) and all(isinstance(group, list | tuple) for group in given)
    if not sequences or not all(len(group) > 1 and all(isinstance(name, str) for name in group) for group in given):
        raise TileError(
            f'fuse is {given!r}; it is groups of the names of two loops\' variables, or more: fuse=(("i", "j"),)'
        )
    return tuple(map(tuple, given))


AUTOMATIC = Schedule()
"""What the compiler does on its own."""
