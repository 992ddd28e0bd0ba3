"""Programs of a launch: their ids, the classes that are run together, and the grid that a class is run on.

Ids are numbers on the host when a kernel is launched. What a program computes from them is computed for all programs at
once. Programs whose loops have other counts, or whose branches are others, are classes of their own, each one launch. A
class is run on a grid whose coordinates may be any numbers that the kernel computes, a quotient or a remainder too, if
all places in memory are sums of multiples of them: so grouped program ids cost nothing on the chip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sley.runtime.frameworks.from_triton.forms import Number

Vector = NDArray[np.int64]
MOST_CLASSES = 64
"""Launches that one launch of Triton may become."""
MOST_PROGRAMS = 1 << 20


class Split(Exception):  # noqa: N818 (no error: the conversion begins again for each class)
    """Programs differ in something that one launch must have alike. ``labels``: what each of them has."""

    def __init__(self, labels: Vector) -> None:
        super().__init__("programs differ")
        self.labels = labels


@dataclass(frozen=True, eq=False)
class Programs:
    """Programs of one class. ``ids``: along x, y and z, one for each program. ``grid``: of the launch."""

    ids: tuple[Vector, Vector, Vector]
    grid: tuple[int, int, int]

    @classmethod
    def all(cls, grid: tuple[int, int, int]) -> Programs:
        z, y, x = (axis.ravel() for axis in np.indices(grid[::-1], np.int64))
        return cls((x, y, z), grid)

    @property
    def count(self) -> int:
        return len(self.ids[0])

    def classes(self, labels: Vector) -> Iterator[Programs]:
        """Those with equal labels together."""
        for label in np.unique(labels):
            chosen = labels == label
            x, y, z = (ids[chosen] for ids in self.ids)
            yield Programs((x, y, z), self.grid)


@dataclass(frozen=True, eq=False)
class Box:
    """A grid for programs: each has one place in it. ``sides``: its sizes. ``coordinates``: of each program."""

    sides: tuple[int, ...]
    coordinates: tuple[Vector, ...]

    def factors(self, value: Number) -> tuple[int, list[int]] | None:
        """A number, and what coordinates are multiplied by, that give this value of each program."""
        if isinstance(value, int):
            return value, [0] * len(self.sides)
        first, rest = int(value[self._at((0,) * len(self.sides))]), value.copy()
        factors = []
        for axis, size in enumerate(self.sides):
            unit = tuple(int(other == axis) for other in range(len(self.sides)))
            factor = int(value[self._at(unit)]) - first if size > 1 else 0
            rest -= factor * self.coordinates[axis]
            factors.append(factor)
        return (first, factors) if (rest == first).all() else None

    def _at(self, place: tuple[int, ...]) -> int:
        """The number of the program at a place."""
        return int(np.argmax(self._order == self._position(place)))

    def _position(self, place: Sequence[int] | Sequence[Vector]) -> Any:
        total: Any = 0
        for size, axis in zip(self.sides, place, strict=True):
            total = total * size + axis
        return total

    @cached_property
    def _order(self) -> Vector:
        order: Vector = self._position(self.coordinates)
        return order


def box_of(axes: Sequence[Vector]) -> Box | None:
    """The grid that these numbers, one for each program and axis, are coordinates of, if they are: evenly spaced, and
    each combination once."""
    sides, coordinates = [], []
    for axis in axes:
        values, places = np.unique(axis, return_inverse=True)
        if len(values) > 2 and len(set(np.diff(values))) > 1:
            return None
        sides.append(len(values))
        coordinates.append(places.astype(np.int64))
    count = len(axes[0])
    if int(np.prod(sides)) != count:
        return None
    places = np.zeros(count, np.int64)
    for size, axis in zip(sides, coordinates, strict=True):
        places = places * size + axis
    return Box(tuple(sides), tuple(coordinates)) if len(np.unique(places)) == count else None


def choose_box(programs: Programs, values: Sequence[Vector], steps: Sequence[Vector]) -> Box | None:
    """A grid on which all ``values`` are sums of multiples of coordinates: of the program ids, or of up to three of
    ``values`` and ``steps``, which are numbers that the kernel computed on the way. None if there is none."""
    ids = box_of(programs.ids)
    if ids is not None and all(ids.factors(value) for value in values):
        return ids
    order = np.arange(programs.count, dtype=np.int64)
    pool = _different([*values, *steps, *programs.ids, order])
    for count in (1, 2, 3):
        for axes in combinations(pool, count):
            box = box_of(axes)
            if box is not None and all(box.factors(value) for value in values):
                return _three(box, programs.count)
    return None


def _three(box: Box, count: int) -> Box:
    missing = 3 - len(box.sides)
    zeros = np.zeros(count, np.int64)
    return Box(box.sides + (1,) * missing, box.coordinates + (zeros,) * missing)


def _different(vectors: Sequence[Vector]) -> list[Vector]:
    """Each that is not the same as, or a multiple of, one before; constant ones are none."""
    found: dict[bytes, Vector] = {}
    for vector in vectors:
        even = vector - vector.min()
        divisor = int(np.gcd.reduce(even))
        if divisor:
            found.setdefault((even // divisor).tobytes(), even // divisor)
    return list(found.values())
