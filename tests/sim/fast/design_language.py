"""The text of a design: expressions with their shapes, and lines of Python."""

import functools
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from amaranth.hdl import (
    Array,
    Assert,
    Assume,
    Cat,
    ClockDomain,
    Const,
    Cover,
    DomainRenamer,
    EnableInserter,
    Format,
    Module,
    Mux,
    Print,
    ResetInserter,
    ResetSignal,
    Shape,
    Signal,
    Value,
    signed,
    unsigned,
)
from amaranth.lib.memory import Memory

MAX_WIDTH = 300
"""No expression is wider."""

LANGUAGE = {
    **{
        item.__name__: item
        for item in (Array, Assert, Assume, Cat, ClockDomain, Const, Cover, DomainRenamer, EnableInserter, Format)
    },
    **{
        item.__name__: item
        for item in (Memory, Module, Mux, Print, ResetInserter, ResetSignal, Signal, Value, signed, unsigned)
    },
    "reduce": functools.reduce,
    "operator": operator,
}
"""The names that the text of a design uses."""


@dataclass(frozen=True)
class Operand:
    """An expression: its text, and a signal that stands for it as far as shapes go."""

    source: str
    value: Signal
    is_signal: bool = False
    is_constant: bool = False

    @property
    def width(self) -> int:
        return len(self.value)

    @property
    def signed(self) -> bool:
        return self.value.shape().signed


@dataclass(frozen=True)
class Target:
    """A signal that statements may assign."""

    name: str
    value: Signal
    domain: str

    @property
    def width(self) -> int:
        return len(self.value)

    @property
    def operand(self) -> Operand:
        return Operand(self.name, self.value, is_signal=True)


@functools.cache
def _compiled(template: str):
    return compile(template.replace("{", "").replace("}", ""), template, "eval")


def combine(template: str, **parts: Operand | int) -> Operand:
    """The operand made of others: ``combine("({a} + {b})", a=x, b=y)``."""
    names = {name: part.value if isinstance(part, Operand) else part for name, part in parts.items()}
    result = Value.cast(eval(_compiled(template), LANGUAGE | names))
    sources = {name: part.source if isinstance(part, Operand) else part for name, part in parts.items()}
    return Operand(template.format(**sources), Signal(result.shape(), name="operand"))


def shape_source(shape: Shape) -> str:
    return f"{'signed' if shape.signed else 'unsigned'}({shape.width})"


class Source:
    """Lines of Python, indented."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0

    def __call__(self, line: str) -> None:
        self.lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self(f"{head}:")
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self("pass")
        self._depth -= 1
