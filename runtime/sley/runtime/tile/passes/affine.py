"""Int32 tiles of which each element is base + row * r + lane * c in row r and column c, and tests of them."""

from __future__ import annotations

from dataclasses import dataclass

from sley.runtime.tile.ir import Value
from sley.runtime.tile.passes.ranges import Range

LIMIT = 1 << 31
COEFFICIENT = 1 << 15
"""Of IOTA_ROW and IOTA_LANE, which are 16 bits."""


def wrapped(number: int) -> int:
    """Modulo 2^32, as an int32."""
    return (number + LIMIT) % (2 * LIMIT) - LIMIT


@dataclass(frozen=True)
class Affine:
    """Attributes: ``terms``: indices and what each is multiplied by. ``base``: a number that is added to them."""

    terms: tuple[tuple[Value, int], ...] = ()
    base: int = 0
    row: int = 0
    lane: int = 0

    @property
    def number(self) -> bool:
        """Whether it is one number, known now."""
        return not self.terms and not self.row and not self.lane

    def plus(self, other: Affine, times: int = 1) -> Affine:
        """The sum, of a multiple of the other one."""
        terms = dict(self.terms)
        for value, factor in other.terms:
            terms[value] = terms.get(value, 0) + factor * times
        return Affine(
            tuple((value, factor) for value, factor in terms.items() if factor),
            self.base + other.base * times,
            self.row + other.row * times,
            self.lane + other.lane * times,
        )

    def times(self, factor: int) -> Affine:
        return Affine().plus(self, factor)

    def negated(self) -> Affine:
        """What is negative where this is not."""
        return Affine(base=-1).plus(self, -1)

    def exact(self, shape: tuple[int, int], ranges: dict[Value, Range]) -> bool:
        """Whether no element of a tile of this shape, for no index, leaves int32."""
        low = high = self.base
        spans = [(ranges[value], factor) for value, factor in self.terms]
        for ends, factor in (*spans, ((0, shape[0] - 1), self.row), ((0, shape[1] - 1), self.lane)):
            corners = [end * factor for end in ends]
            low, high = low + min(corners), high + max(corners)
        fits = all(-COEFFICIENT <= factor < COEFFICIENT for factor in (self.row, self.lane))
        return low >= -LIMIT and high < LIMIT and fits


@dataclass(frozen=True)
class Condition:
    """All tests are negative; or not all of them are, if it is ``negated``."""

    tests: tuple[Affine, ...]
    negated: bool = False

    def opposite(self) -> Condition:
        if len(self.tests) == 1:
            return Condition((self.tests[0].negated(),))
        return Condition(self.tests, not self.negated)

    def both(self, other: Condition) -> Condition | None:
        """Where this one and the other one hold, if that is a condition, too."""
        if self.negated or other.negated:
            return None
        return Condition(self.tests + other.tests)

    def either(self, other: Condition) -> Condition | None:
        """Where one of them holds, if that is a condition, too."""
        neither = self.opposite().both(other.opposite())
        return neither.opposite() if neither else None
