"""Integers that are known but for the program, the round of a loop, and the element of a tensor.

A form is ``base + sum of factor * round + sum of stride * coordinate``. The base is a number, or one number for each
program of the launch: they are computed on the host, whatever divisions and remainders it takes, so nothing about them
is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Number = int | NDArray[np.int64]
"""An integer, or one for each program."""


def number(values: Any) -> Number:
    """An integer if all programs have the same."""
    array = np.asarray(values, np.int64)
    if array.ndim == 0:
        return int(array)
    return int(array[0]) if (array == array[0]).all() else array


def least(value: Number) -> int:
    """The least of all programs."""
    return int(np.min(value))


def most(value: Number) -> int:
    """The largest of all programs."""
    return int(np.max(value))


@dataclass(eq=False)
class Loop:
    """A loop over ``count`` rounds. ``variable``: the index that counts them in the tile IR."""

    count: int
    variable: Any = None


@dataclass(frozen=True, eq=False)
class Form:
    """Attributes: ``base``: a number, or one a program. ``loops``: what the number of each round is multiplied by.
    ``coords``: the same of each coordinate of the tensor, none for a scalar. ``shape``: of the tensor. ``data``: a
    tile of integers that is added, and its factor. ``valid``: tests of coordinates, negative where the form is right;
    elsewhere it is not what the kernel says, and must not be used."""

    base: Number = 0
    loops: tuple[tuple[Loop, int], ...] = ()
    coords: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    data: tuple[Any, int] | None = None
    valid: tuple[Form, ...] = field(default=())

    @property
    def scalar(self) -> bool:
        """Whether it is the same for all elements and rounds, and no data."""
        return not self.loops and not any(self.coords) and self.data is None

    @property
    def constant(self) -> int | None:
        """The number that it is for all programs, elements and rounds."""
        return self.base if self.scalar and isinstance(self.base, int) else None

    def plus(self, other: Form, times: int = 1) -> Form:
        """The sum, of a multiple of the other one, of the same shape. One of them at most has data."""
        assert not (self.data and other.data), "the sum of two tiles is one"
        loops = dict(self.loops)
        for loop, factor in other.loops:
            loops[loop] = loops.get(loop, 0) + factor * times
        data = self.data or (other.data and (other.data[0], other.data[1] * times))
        return Form(
            number(np.add(self.base, np.multiply(other.base, times))),
            tuple((loop, factor) for loop, factor in loops.items() if factor),
            tuple(a + b * times for a, b in zip(self.coords, other.coords, strict=True)),
            self.shape,
            data if data and data[1] else None,
            merged(self.valid, other.valid),
        )

    def add(self, value: Number) -> Form:
        """The sum with a number."""
        return Form(number(np.add(self.base, value)), self.loops, self.coords, self.shape, self.data, self.valid)

    def times(self, factor: int) -> Form:
        """The product with a number."""
        made = Form(0, (), (0,) * len(self.shape), self.shape).plus(self, factor)
        return made

    def low(self) -> Number:
        """The least value of each program, without data."""
        return self._bound(min)

    def high(self) -> Number:
        """The largest value of each program, without data."""
        return self._bound(max)

    def _bound(self, which: Callable[..., int]) -> Number:
        spans = [(loop.count, factor) for loop, factor in self.loops]
        spans += list(zip(self.shape, self.coords, strict=True))
        return number(np.add(self.base, sum(which(0, (size - 1) * factor) for size, factor in spans)))

    def without(self) -> Form:
        """The base and the loops as a scalar, and of the coordinates none."""
        return Form(self.base, self.loops, (), (), None)

    def shaped(self, shape: Sequence[int], axes: Sequence[int | None]) -> Form:
        """The form on another shape, whose axis i is the axis ``axes[i]`` of this one, or a new one."""
        coords = tuple(0 if axis is None else self.coords[axis] for axis in axes)
        valid = tuple(test.shaped(shape, axes) for test in self.valid)
        data = self.data and (self.data[0].shaped(shape, axes), self.data[1])
        return Form(self.base, self.loops, coords, tuple(shape), data, valid)

    def replaced(self, **changes: Any) -> Form:
        """With other attributes."""
        names = ("base", "loops", "coords", "shape", "data", "valid")
        return Form(**{name: changes.get(name, getattr(self, name)) for name in names})

    def same(self, other: Form) -> bool:
        """Whether both are equal for all programs, rounds and elements."""
        return (
            bool(np.all(np.equal(self.base, other.base)))
            and dict(self.loops) == dict(other.loops)
            and self.coords == other.coords
            and self.data == other.data
        )


def merged(a: tuple[Form, ...], b: tuple[Form, ...]) -> tuple[Form, ...]:
    """The tests of both, each once."""
    return a + tuple(test for test in b if not any(test.same(other) for other in a))


def constant(value: Number, shape: Sequence[int] = ()) -> Form:
    """A number for all elements."""
    return Form(number(value), (), (0,) * len(shape), tuple(shape))


def divided(form: Form, divisor: int) -> Form | None:
    """The quotient, rounded down, if it is a form: all factors are multiples of the divisor, but those that never
    reach the next multiple."""
    if form.data is not None or form.valid or divisor < 1:
        return None
    exact = tuple((loop, factor // divisor) for loop, factor in form.loops if factor % divisor == 0)
    coords = tuple(factor // divisor if factor % divisor == 0 else 0 for factor in form.coords)
    rest = remaining(form, divisor)
    if most(rest.high()) >= divisor or least(rest.low()) < 0:
        return None
    return Form(number(np.floor_divide(form.base, divisor)), exact, coords, form.shape)


def remaining(form: Form, divisor: int) -> Form:
    """The form without multiples of the divisor: the remainder, if it stays below the divisor."""
    loops = tuple((loop, factor) for loop, factor in form.loops if factor % divisor)
    coords = tuple(factor if factor % divisor else 0 for factor in form.coords)
    return Form(number(np.mod(form.base, divisor)), loops, coords, form.shape)
