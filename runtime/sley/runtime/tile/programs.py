"""Programs and choices kept on disk, so that another process need not make them again.

A program is found by the text of its function behind the front end, the chip, the schedule and the compiler: what the
source says, with everything that it calls, is in that text. Choices are found by the text of their first candidate.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import sley.abi.config
import sley.runtime.assembler.kernel
from sley.abi.cache import unusable
from sley.abi.config import ChipConfig
from sley.runtime.cache import cache_folder
from sley.runtime.device.program import Program
from sley.runtime.errors import KernelError
from sley.runtime.tile.compiler import Compiled
from sley.runtime.tile.ir import Function
from sley.runtime.tile.schedule import Schedule
from sley.runtime.tile.text import printed

_LINE = re.compile(r" @\d+")


@cache
def compiler_version() -> str:
    """A digest of the compiler's own source and of what describes the chip: with another one programs are others."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    for module in (sley.abi.config.__file__, sley.runtime.assembler.kernel.__file__, __file__):
        yield from sorted(Path(module).parent.rglob("*.py"))


def key_of(function: Function, config: ChipConfig, schedule: Schedule, *more: object) -> str:
    """A digest of all that a program depends on, and of ``more``."""
    text = _LINE.sub("", printed(function))
    parts = (text, f"{config!r}", f"{schedule!r}", compiler_version(), *map(repr, more))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def kept_program(key: str) -> Compiled | None:
    """The program that ``keep_program`` kept, if any. Raises ``KernelError`` for a file that is none."""
    found = _read("programs", key)
    if found is None:
        return None
    x, y, z = found["grid"]
    program = Program(
        found["name"],
        tuple(int(word, 16) for word in found["words"]),
        tuple(found["args"]),
        found["config_hash"],
        frozenset(found["strided"]),
        tuple((name, bound) for name, bound in found["bounds"]),
        frozenset(found["reads"]),
    )
    return Compiled(program, (x, y, z), found["gang"])


def keep_program(key: str, compiled: Compiled) -> None:
    """Keeps a program for all processes. Raises ``KernelError`` if the folder cannot be used."""
    program = compiled.program
    content = {
        "name": program.name,
        "words": [f"{word:x}" for word in program.words],
        "args": program.args,
        "config_hash": program.config_hash,
        "strided": sorted(program.strided),
        "bounds": program.bounds,
        "reads": sorted(program.reads),
        "grid": compiled.grid,
        "gang": compiled.gang,
    }
    _write("programs", key, content)


def kept_choice(key: str) -> int | None:
    """The number of the candidate that ``keep_choice`` kept, if any."""
    found = _read("choices", key)
    return None if found is None else int(found["candidate"])


def keep_choice(key: str, candidate: int, measured: int | None = None) -> None:
    """Keeps the number of a candidate; ``measured``: its cycles, if it was measured."""
    _write("choices", key, {"candidate": candidate, "measured": measured})


def _file(kind: str, key: str) -> Path:
    return cache_folder() / "tile" / kind / key[:2] / f"{key}.json"


def _read(kind: str, key: str) -> dict[str, Any] | None:
    path = _file(kind, key)
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    digest, _, body = text.partition("\n")
    if digest != hashlib.sha256(body.encode()).hexdigest():
        raise KernelError(f"{path} is damaged: remove it, and it is made again")
    found: dict[str, Any] = json.loads(body)
    return found


def _write(kind: str, key: str, content: dict[str, Any]) -> None:
    path, body = _file(kind, key), json.dumps(content)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}")
        part.replace(path)
    except OSError as error:
        raise KernelError(unusable(cache_folder(), error)) from None
