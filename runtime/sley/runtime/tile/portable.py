"""Programs in a file that any chip runs: the text of a kernel's IR, compiled when it is launched.

The file has a line with its version and a digest of the rest, and the text of each combination of choices behind it,
with empty lines between them. The combination with the least cycles on the chip at hand is compiled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from sley.abi.config import ChipConfig
from sley.runtime.device.stream import Stream
from sley.runtime.tile.arguments import Types, bind
from sley.runtime.tile.build import Bindable, Problem, build
from sley.runtime.tile.choices import Choice, Grid, Sides
from sley.runtime.tile.compiler import Compiled
from sley.runtime.tile.ir import Function
from sley.runtime.tile.operations import TileError
from sley.runtime.tile.schedule import AUTOMATIC, Schedule
from sley.runtime.tile.text import parse, printed
from sley.runtime.tile.types import ArrayType

VERSION = 1
"""Of the file's form; that of the IR in it is in its text."""
HEAD = "sley.tile.program"
CHOSEN = "candidate"


class Portable:
    """A kernel for arrays of given types, for any chip. ``program(x, y)`` launches it; ``program.save(path)`` writes it
    to a file, which ``open_program`` reads.

    Parameters
    ----------
    functions: one for each combination of choices, all with the same name and arrays.

    Attributes
    ----------
    name: of the kernel. arrays: types by name, as the kernel takes them; those of tuples with names of their own.
    """

    def __init__(self, functions: Sequence[Function]) -> None:
        first = functions[0]
        self.name = first.name
        self.texts = tuple(printed(function) for function in functions)
        self.grids = tuple(function.grid for function in functions)
        self.arrays = {value.name: value.type for value in first.arrays if isinstance(value.type, ArrayType)}
        self._programs: dict[tuple[int, Schedule], Compiled] = {}
        self._signature = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in self.arrays])

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name}: {type}" for name, type in self.arrays.items())
        return f"Portable({self.name}({arrays}), {len(self.texts)} candidates)"

    def __call__(self, *args: Any, stream: Stream | None = None, schedule: Schedule = AUTOMATIC, **kwargs: Any) -> None:
        """Runs it; returns before it is done. Raises ``TileError`` for arrays of other types, and what a launch of the
        kernel does."""
        call = bind(self.name, self._signature, args, kwargs)
        for name, wanted in self.arrays.items():
            if call.types.get(name) != wanted:
                found = call.types.get(name, "no array")
                raise TileError(f"{name} of {self.name} is {found}; the program was made for {wanted}: make another")
        compiled = self.compiled(call.device.config, schedule)
        call.check_apart(self.name, compiled.program.reads)
        compiled.launch(stream or call.device.stream, [*call.arrays.values()])

    def compiled(self, config: ChipConfig, schedule: Schedule = AUTOMATIC) -> Compiled:
        """The program for a chip. Raises ``TileError``, ``KernelError``."""
        key = config.hash, schedule
        if key not in self._programs:
            choice = {CHOSEN: Choice(tuple(range(len(self.texts))))}
            types: dict[str, Types] = dict(self.arrays)
            problem = Problem(self, types, choice, lambda candidate: self.grids[candidate], config, schedule)
            self._programs[key] = build(problem)[1]
        return self._programs[key]

    def function(self, arrays: dict[str, Types], constants: dict[str, Any], grid: Sides) -> Function:
        """The tile IR of a candidate."""
        return parse(self.texts[constants[CHOSEN]])

    def save(self, path: str | Path) -> None:
        """Writes it to a file."""
        body = "\n".join(self.texts)
        Path(path).write_text(f"{HEAD} {VERSION} {_digest(body)}\n{body}")


def open_program(path: str | Path) -> Portable:
    """A program that ``Portable.save`` wrote. Raises ``TileError`` for a file that is none, of another version, or
    damaged."""
    try:
        head, _, body = Path(path).read_text().partition("\n")
    except UnicodeDecodeError:
        head, body = "", ""
    words = head.split()
    if len(words) != 3 or words[0] != HEAD:
        raise TileError(f"{path} is no program of tiles; kernel.portable[grid](...).save(path) writes one")
    if words[1] != str(VERSION):
        raise TileError(f"{path} is a program of version {words[1]}, this is version {VERSION}: save the kernel again")
    if words[2] != _digest(body):
        raise TileError(f"{path} is damaged: its text is not what was saved; save the kernel again")
    try:
        return Portable([parse(text) for text in body.split("\n\n")])
    except TileError as error:
        raise TileError(f"{path}: {error}") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Exporter:
    """``kernel.portable[grid](...)`` takes the arguments of a launch, and gives the kernel for arrays like these as a
    ``Portable``, with every combination of its choices.
    """

    def __init__(self, kernel: Bindable) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: Grid) -> Callable[..., Portable]:
        def export(*args: Any, **kwargs: Any) -> Portable:
            call = self.kernel.bind(args, kwargs)
            problem = Problem(self.kernel, call.types, call.constants, grid, call.device.config, AUTOMATIC)
            return Portable([self.kernel.function(call.types, c.constants, c.grid) for c in problem.candidates()])

        return export
