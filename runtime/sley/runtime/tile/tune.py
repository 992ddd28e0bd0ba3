"""Choices by measurement: the likeliest candidates run on the device, and the fastest is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sley.driver import NoCycleCounts
from sley.runtime.device.stream import Stream
from sley.runtime.errors import KernelError
from sley.runtime.tile.arguments import Call
from sley.runtime.tile.build import Bindable, Candidate, Problem, no_room, numbered
from sley.runtime.tile.choices import Choice, Grid
from sley.runtime.tile.programs import keep_choice
from sley.runtime.tile.schedule import AUTOMATIC, Schedule

MEASURED = 8
"""Candidates, those with the least cycles by the closed form."""


@dataclass(frozen=True)
class Measurement:
    """A candidate: values of the choices, cycles by the closed form, and on the device."""

    choices: dict[str, Any]
    estimate: int
    cycles: int


class Tunable(Bindable, Protocol):
    """What is tuned: a kernel that keeps programs."""

    def forget(self) -> None:
        """Programs are chosen anew."""


class Tuner:
    """``kernel.tune[grid](...)`` takes the arguments of a launch, with choices. It runs the eight candidates with the
    least cycles by the closed form on the device, each twice, and keeps the fastest for this problem, also on disk.
    Arrays have the contents behind it that they had before.

    Returns what was measured, the fastest first. Raises ``NoCycleCounts`` on an engine without cycles, ``TileError``.
    """

    def __init__(self, kernel: Tunable) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: Grid) -> Callable[..., list[Measurement]]:
        def tune(
            *args: Any, stream: Stream | None = None, schedule: Schedule = AUTOMATIC, **kwargs: Any
        ) -> list[Measurement]:
            call = self.kernel.bind(args, kwargs)
            problem = Problem(self.kernel, call.types, call.constants, grid, call.device.config, schedule)
            return self.run(problem, call, stream or call.device.stream)

        return tune

    def run(self, problem: Problem, call: Call, stream: Stream) -> list[Measurement]:
        """Measures the candidates of a problem with the arrays of a call."""
        if not call.device.driver.has_cycles:
            raise NoCycleCounts
        contents = [array.numpy() for array in call.arrays.values()]
        tried, found, errors = problem.candidates(), list[tuple[int, Candidate]](), list[KernelError]()
        for candidate in problem.ranked():
            if len(found) == MEASURED:
                break
            try:
                found.append((self._cycles(problem, candidate, call, stream), candidate))
            except KernelError as error:  # no program: too many instructions, registers or semaphores
                errors.append(error)
                continue
            for array, values in zip(call.arrays.values(), contents, strict=True):
                array.write(values)
        if not found:
            raise no_room(self.kernel.name, errors)
        found.sort(key=lambda pair: pair[0])
        cycles, best = found[0]
        keep_choice(problem.choice_key(), numbered(tried, best), cycles)
        self.kernel.forget()
        names = [name for name, value in call.constants.items() if isinstance(value, Choice)]
        return [Measurement({n: c.constants[n] for n in names}, c.cycles, cycles) for cycles, c in found]

    def _cycles(self, problem: Problem, candidate: Candidate, call: Call, stream: Stream) -> int:
        compiled = problem.program(candidate)
        call.check_apart(self.kernel.name, compiled.program.reads)
        arrays = list(call.arrays.values())
        compiled.launch(stream, arrays)  # its program is in memory from here on
        with stream.timed() as timing:
            compiled.launch(stream, arrays)
        return timing.cycles
