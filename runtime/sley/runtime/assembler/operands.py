"""What the instructions of a kernel are about: registers, semaphores and labels, by name."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Register:
    """A scalar register of the sequencer."""

    number: int
    name: str


@dataclass(frozen=True)
class Semaphore:
    """A semaphore of the core; a block starts with it at ``initial``."""

    number: int
    name: str
    initial: int


@dataclass
class Label:
    """A place in the program; ``index`` is known once it is placed."""

    name: str
    index: int | None = None


Value = Register | int
Semaphores = Semaphore | Iterable[Semaphore]

ZERO = Register(0, "zero")


def wrapped(value: int) -> int:
    """The signed 32-bit number that a value modulo 2^32 takes instead; what is no such number is left to fail."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31) if abs(value) < 1 << 32 else value
