"""A study: a question about the chip, what answers it, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Cell = str | int | float


@dataclass(frozen=True)
class Line:
    """Points of the picture that belong together, from the left."""

    label: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Result:
    """What a study found.

    Attributes
    ----------
    columns, rows: the table; numbers are written with commas, those below 100 with three digits. lines: the picture.
    x, y: its axes, with units. ticks: of the x axis, which is logarithmic then; None: as they come.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    lines: Sequence[Line]
    x: str
    y: str
    ticks: Sequence[float] | None = None


@dataclass(frozen=True)
class Study:
    """``run`` answers ``question``, on a workload of seconds if ``small``. ``text``: how, in Markdown."""

    name: str
    question: str
    text: str
    run: Callable[[bool], Result]


def shown(cell: Cell) -> str:
    """A cell of a table."""
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.0f}" if cell >= 100 else f"{cell:.3g}"
