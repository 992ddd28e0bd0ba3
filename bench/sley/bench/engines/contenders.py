"""What ``sley bench sim`` compares: engines, and the environment variables that they are built with."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

BEST_FLAGS = "-O3 -march=native"


@dataclass(frozen=True)
class Contender:
    """An engine, and the environment variables it is built and opened with."""

    name: str
    engine: str
    environment: tuple[tuple[str, str], ...] = ()


def contenders(flags: Sequence[str]) -> list[Contender]:
    """``fast``, and ``rtl`` as it builds itself and with each of these CXXFLAGS."""
    variants = [Contender(f"rtl {text}", "rtl", (("CXXFLAGS", text),)) for text in flags]
    return [Contender("fast", "fast"), Contender("rtl", "rtl"), *variants]


@contextmanager
def environment(variables: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Sets environment variables for the time of a ``with`` block."""
    before = {name: os.environ.get(name) for name, _ in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
