"""The command ``sley bench array``."""

import csv
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.abi.config import PRESETS
from sley.abi.outputs import check_output


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
    from sley.bench.engines.array import BEST_FLAGS, measure_array
    from sley.bench.engines.contenders import environment

    if config not in PRESETS:
        raise typer.BadParameter(f"no preset {config!r}; there are {', '.join(PRESETS)}")
    check_output(output)
    chip = PRESETS[config]
    # In a cache that is empty and goes away: everything is built, and leaves nothing behind.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, environment([("SLEY_CACHE", folder)]):
        results = list(measure_array(chip, cycles, rounds, tuple(flags or BEST_FLAGS)))
    table = Table("", *(result.name for result in results))
    table.title = f"{config}: {chip.array} x {chip.array} elements, equal outputs in {cycles:,} cycles"
    values = {
        "ns a cycle": [result.cycle for result in results],
        "of which the stimulus": [result.stimulus for result in results],
        "ns an element": [(result.cycle - result.stimulus) / chip.array**2 for result in results],
        "build: text, processor s": [result.text for result in results],
        "build: library, processor s": [result.library for result in results],
    }
    for quantity, row in values.items():
        table.add_row(quantity, *(f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in row))
    console = Console()
    console.print(table)
    fast, *others = results
    speed = min(other.cycle - other.stimulus for other in others) / (fast.cycle - fast.stimulus)
    whole = min(other.cycle for other in others) / fast.cycle
    build = min(other.text + other.library for other in others) / (fast.text + fast.library)
    typer.echo(
        f"fast is {speed:.2f} times as fast as the fastest, {whole:.2f} times with the stimulus, "
        f"and built in 1/{build:.1f} of the shortest time"
    )
    if output is not None:
        with output.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("array", "engine", "quantity", "value"))
            for quantity, row in values.items():
                names = (result.name for result in results)
                writer.writerows(
                    (config, name, quantity, f"{value:.6g}") for name, value in zip(names, row, strict=True)
                )
