"""The command ``sley bench sweep``."""

from pathlib import Path
from typing import Annotated

import typer


def sweep(folder: Annotated[Path, typer.Argument(help="Folder of a sweep: what `sley sweep -o` was given.")]) -> None:
    """What the designs of a sweep took: seconds of one core, compilers included, and cycles a second."""
    from rich.console import Console
    from rich.table import Table

    from sley.driver import BadRequest
    from sley.explore.command import JOURNAL
    from sley.explore.sweep.journal import DONE, Journal

    if not (folder / JOURNAL).is_file():
        raise BadRequest(f"there is no {folder / JOURNAL}; run sley sweep SPACE -o {folder} first")
    journal = Journal(folder / JOURNAL)
    journal.close()
    runs = [run for run in journal.runs.values() if run.status == DONE and run.cost]
    if not runs:
        raise BadRequest(f"{folder / JOURNAL} has no design that ran")
    seconds, cycles = [run.seconds for run in runs], [int(run.cost["cycles"]) for run in runs if run.cost]
    table = Table("designs", "M cycles, mean", "core-seconds, mean", "median", "worst", "M cycles a second")
    middle = sorted(seconds)[len(seconds) // 2]
    rate = sum(cycles) / max(sum(seconds), 1e-9) / 1e6
    shown = (sum(cycles) / len(cycles) / 1e6, sum(seconds) / len(seconds), middle, max(seconds), rate)
    table.add_row(f"{len(runs)}", *(f"{number:.2f}" for number in shown))
    Console().print(table)
