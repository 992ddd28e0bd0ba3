"""The numbers of ``sley bench sim``: one for each engine and quantity, and how many times the first is better."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

BUSY, BUSY_BF16 = "busy in int8, cycles a second", "busy in bf16, cycles a second"
IDLE = "idle, cycles a second"
WRITE, SNAPSHOT = "register write, µs", "snapshot, µs"
TEXT, LIBRARY, START = "build: text, processor s", "build: library, processor s", "build and start, wall s"
BUILD, LATER = "build: both, processor s", "later start, wall s"


@dataclass(frozen=True)
class Figure:
    """One measured number. ``quantity`` ends with its unit."""

    preset: str
    contender: str
    quantity: str
    value: float


def speedups(figures: Sequence[Figure]) -> Iterator[tuple[str, str, float]]:
    """Preset, quantity, and how many times ``fast`` is better than the best of the others."""
    for preset in dict.fromkeys(figure.preset for figure in figures):
        own = {f.quantity: f.value for f in figures if f.preset == preset and f.contender == "fast"}
        for quantity, value in own.items():
            others = [
                f.value
                for f in figures
                if (f.preset, f.quantity) == (preset, quantity) and not f.contender.startswith("fast")
            ]
            if not others or not value:
                continue
            more = quantity in (BUSY, BUSY_BF16, IDLE)
            yield preset, quantity, value / max(others) if more else min(others) / value


def write_csv(path: Path, figures: Sequence[Figure]) -> None:
    """One line for each number."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("preset", "engine", "quantity", "value"))
        writer.writerows((f.preset, f.contender, f.quantity, f"{f.value:.6g}") for f in figures)
