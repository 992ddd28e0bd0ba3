"""What ``sley bench sim`` compares: engines, and the environment variables that they are built with."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sley.sim.fast.run.tier import BEST, FIRST, VARIABLE

BEST_FLAGS = "-O3 -march=native"


@dataclass(frozen=True)
class Contender:
    """An engine, and the environment variables it is built and opened with."""

    name: str
    engine: str
    environment: tuple[tuple[str, str], ...] = ()


def contenders(flags: Sequence[str]) -> list[Contender]:
    """``fast`` in its two tiers, the best one by its plain name, and ``rtl`` as it builds itself and with each of these
    CXXFLAGS."""
    variants = [Contender(f"rtl {text}", "rtl", (("CXXFLAGS", text),)) for text in flags]
    tiers = [
        Contender(name, "fast", ((VARIABLE, tier),)) for name, tier in (("fast", BEST), ("fast, first tier", FIRST))
    ]
    return [*tiers, Contender("rtl", "rtl"), *variants]


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
