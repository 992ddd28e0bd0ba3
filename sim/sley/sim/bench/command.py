"""The command ``sley bench array``; found through the entry points ``sley.bench``."""

import csv
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.abi.config import PRESETS


def array(
    config: Annotated[str, typer.Argument(help=f"Preset that has the array: {', '.join(PRESETS)}.")] = "base",
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="Cycles of a round.")] = 100_000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds, of which the best counts.")] = 5,
    flags: Annotated[
        list[str] | None,
        typer.Option("--flags", help="Flags of the C++ compiler for Verilator's code; may be repeated."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--csv", help="File for all numbers.", dir_okay=False)] = None,
) -> None:
    """Compare the fast engine with Verilator on the bare systolic array, with random inputs."""
    from sley.sim.bench.array import BEST_FLAGS, measure_array

    if config not in PRESETS:
        raise typer.BadParameter(f"no preset {config!r}; there are {', '.join(PRESETS)}")
    chip = PRESETS[config]
    before = os.environ.get("SLEY_CACHE")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["SLEY_CACHE"] = folder  # so that everything is built, and leaves nothing behind
        try:
            results = list(measure_array(chip, cycles, rounds, tuple(flags or BEST_FLAGS)))
        finally:
            if before is None:
                del os.environ["SLEY_CACHE"]
            else:
                os.environ["SLEY_CACHE"] = before
    title = f"Array of {chip.array} x {chip.array} elements, processor time, equal outputs in {cycles:,} cycles"
    columns = ("", "ns a cycle", "of it stimulus", "ns an element", "build: text, s", "build: library, s")
    table = Table(*columns, title=title)
    rows = []
    for result in results:
        own = result.cycle - result.stimulus
        rows.append((result.name, result.cycle, result.stimulus, own / chip.array**2, result.text, result.library))
        name, *values = rows[-1]
        table.add_row(name, *(f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in values))
    console = Console()
    console.print(table)
    fast, *others = results
    speed = min(other.cycle for other in others) / fast.cycle
    build = min(other.text + other.library for other in others) / (fast.text + fast.library)
    console.print(f"fast is {speed:.2f} times as fast as the fastest, and built in 1/{build:.1f} of the shortest time")
    if output is not None:
        with output.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("array", "engine", "quantity", "value"))
            for name, *values in rows:
                writer.writerows(
                    (config, name, what, f"{value:.6g}") for what, value in zip(columns[1:], values, strict=True)
                )
