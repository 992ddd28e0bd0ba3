"""From a kernel and the types of a launch to a program: choices are made, and what is kept on disk is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from sley.abi.config import ChipConfig
from sley.runtime.errors import KernelError
from sley.runtime.tile.arguments import Call, Types
from sley.runtime.tile.bound import least
from sley.runtime.tile.choices import Choice, Grid, Sides, candidates, sides
from sley.runtime.tile.compiler import Compiled, compile_function, prepare
from sley.runtime.tile.ir import Function
from sley.runtime.tile.operations import RoomError
from sley.runtime.tile.programs import keep_choice, keep_program, kept_choice, kept_program, key_of
from sley.runtime.tile.schedule import Schedule
from sley.runtime.tile.text import printed


class Traceable(Protocol):
    """What a program is made of: a kernel."""

    name: str

    def function(self, arrays: dict[str, Types], constants: dict[str, Any], grid: Sides) -> Function:
        """The tile IR for these types."""


class Bindable(Traceable, Protocol):
    """A kernel with the arguments of a launch."""

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
        """Arrays and constants by name."""


@dataclass(frozen=True)
class Candidate:
    """Constants, the grid that follows from them, and the cycles that it is thought to take; 0 if nobody asked."""

    constants: dict[str, Any]
    grid: Sides
    cycles: int = 0


@dataclass(frozen=True)
class Problem:
    """A kernel for arrays of these types, on a chip, with constants of which some may be choices."""

    kernel: Traceable
    arrays: dict[str, Types]
    constants: Mapping[str, Any]
    grid: Grid
    config: ChipConfig
    schedule: Schedule

    def candidates(self) -> list[Candidate]:
        """All combinations of choices, as they are written. Raises ``TileError``, ``BadRequest``."""
        name = self.kernel.name
        return [Candidate(made, sides(self.grid, name, made)) for made in candidates(name, self.constants)]

    def ranked(self) -> Iterator[Candidate]:
        """Candidates that have room, those with the least cycles first; of equal ones, and of those that are one
        function, the first. One that takes longer by its bound than others by their price is priced when these are
        asked for. Raises ``RoomError`` if none has room: that of the one that lacks least."""
        errors, left, seen = list[RoomError](), list[tuple[int, bool, int, Candidate, Function | None]](), set[str]()
        for number, candidate in enumerate(self.candidates()):
            function = self.kernel.function(self.arrays, candidate.constants, candidate.grid)
            text = printed(function)
            if text not in seen:
                seen.add(text)
                left.append((least(function, self.config), False, number, candidate, function))
        heapify(left)
        found = False
        while left:
            _, _, number, candidate, traced = heappop(left)
            if traced is None:  # it has a price
                found = True
                yield candidate
                continue
            try:
                cycles = prepare(traced, self.config, self.schedule, verified=False).price.cycles
            except RoomError as error:
                errors.append(error)
                continue
            heappush(left, (cycles, True, number, replace(candidate, cycles=cycles), None))
        if not found:
            raise no_room(self.kernel.name, errors)

    def program(self, candidate: Candidate) -> Compiled:
        """The program of a candidate. Raises ``TileError``, ``KernelError``."""
        function = self.kernel.function(self.arrays, candidate.constants, candidate.grid)
        key = key_of(function, self.config, self.schedule)
        compiled = kept_program(key)
        if compiled is None:
            compiled = compile_function(function, self.config, self.schedule)
            keep_program(key, compiled)
        return compiled

    def choice_key(self) -> str:
        """What a choice is kept by: the first candidate, and what the others are."""
        tried = self.candidates()
        function = self.kernel.function(self.arrays, tried[0].constants, tried[0].grid)
        choices = {name: value for name, value in self.constants.items() if isinstance(value, Choice)}
        return key_of(function, self.config, self.schedule, choices)


def build(problem: Problem) -> tuple[Candidate, Compiled]:
    """The candidate with the least cycles that is a program, and that. Raises ``TileError``, ``KernelError``."""
    tried = problem.candidates()
    if len(tried) == 1:
        return tried[0], problem.program(tried[0])
    key = problem.choice_key()
    number = kept_choice(key)
    if number is not None and number < len(tried):
        return tried[number], problem.program(tried[number])
    errors = []
    for candidate in problem.ranked():
        try:
            compiled = problem.program(candidate)
        except KernelError as error:  # too many instructions, registers or semaphores
            errors.append(error)
            continue
        keep_choice(key, numbered(tried, candidate))
        return candidate, compiled
    raise no_room(problem.kernel.name, errors)


def numbered(tried: Sequence[Candidate], candidate: Candidate) -> int:
    """Which of the candidates one is."""
    return next(number for number, other in enumerate(tried) if other.constants == candidate.constants)


def no_room(kernel: str, errors: Sequence[KernelError]) -> KernelError:
    """The error if no candidate is a program: that of the one that lacks least, or else the first one's."""
    least = min(errors, key=lambda error: error.lack if isinstance(error, RoomError) else float("inf"))
    if len(errors) == 1:
        return least
    if isinstance(least, RoomError):
        return RoomError(f"none of the {len(errors)} choices of {kernel} has room; the closest: {least}", least.lack)
    return KernelError(f"none of the {len(errors)} choices of {kernel} can be compiled; the first: {least}")
