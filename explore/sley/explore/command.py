"""The command ``sley sweep``: what chips of a space cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from sley.abi.config import ChipConfig
from sley.abi.install import extra
from sley.driver import BadRequest
from sley.explore.area.model import Area, area_of
from sley.explore.costs.workload import Workload
from sley.explore.results.table import on_front, rows, write_tables
from sley.explore.search.searches import GRID, SEARCHES, search_of
from sley.explore.sweep.journal import DONE, FAILED, Journal, Run
from sley.explore.sweep.objectives import OBJECTIVES, check_objectives
from sley.explore.sweep.sweep import Outcome, Sweep
from sley.explore.sweep.workers import Processes, Workers
from sley.fpga.flow.toolchain import require_tools

JOURNAL = "journal.jsonl"


def sweep(
    space: Annotated[Path, typer.Argument(help="A space: TOML, or Python with the same names.", dir_okay=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the journal and the results.", file_okay=False)
    ] = Path("sweep"),
    search: Annotated[str, typer.Option("--search", "-s", help=f"One of {', '.join(SEARCHES)}.")] = GRID,
    designs: Annotated[
        int | None, typer.Option("--designs", "-n", min=1, help="At most so many; a grid has all, others 100.")
    ] = None,
    objectives: Annotated[
        list[str] | None, typer.Option("--objective", help=f"In place of the file's: {', '.join(OBJECTIVES)}.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of searches that draw.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes on this machine.")] = os.cpu_count() or 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a scheduler of Dask, such as tcp://host:8786, in place of processes.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run what failed before once more.")] = False,
    synthesize: Annotated[
        int,
        typer.Option("--synthesize", min=0, help="Synthesise so many chips of the front, in minutes each."),
    ] = 0,
) -> None:
    """Explore a space of chips: cycles, energy, area and bytes of networks, and the Pareto front of them."""
    from sley.explore.results.picture import write_picture
    from sley.explore.space.file import read_space

    read, named = read_space(space)
    chosen = check_objectives(objectives or named)
    if synthesize:
        require_tools()
    way = search_of(search, read, len(chosen), designs, seed)
    output.mkdir(parents=True, exist_ok=True)
    journal = Journal(output / JOURNAL)
    workloads = {workload.name: workload for workload in read.workloads}
    workers = _workers(workloads, jobs, scheduler)
    console = Console(stderr=True)
    total = min(designs or read.size, read.size) * len(workloads)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("designs", total=total)

        def ended(run: Run, left: int) -> None:
            bar.update(task, advance=1, description=f"designs, {left} of this round left")
            if run.status == FAILED:
                bar.console.print(f"failed: {run.workload}: {run.reason}", highlight=False)

        made = Sweep(read, chosen, journal, workers, retry, ended)
        try:
            made.run(way)
        finally:
            workers.close()
            journal.close()
    chips = _synthesised(made.outcomes, chosen, synthesize, jobs) if synthesize else {}
    written = write_tables(output, made.outcomes, chips)
    picture = write_picture(output, space.stem, made.outcomes, chosen)
    _print(made.outcomes, chosen)
    typer.echo(f"written: {', '.join(str(path) for path in (*written, picture) if path)}")


def _workers(workloads: dict[str, Workload], jobs: int, scheduler: str | None) -> Workers:
    """Processes, or a cluster. Raises ``BadRequest`` without Dask."""
    if scheduler is None:
        return Processes(workloads, jobs)
    try:
        from sley.explore.sweep.cluster import Cluster
    except ImportError as error:
        raise BadRequest(f"--scheduler needs Dask, which is not installed ({error}): {extra('explore')}") from None
    return Cluster(workloads, scheduler)


def _synthesised(outcomes: list[Outcome], objectives: tuple[str, ...], count: int, jobs: int) -> dict[int, Area]:
    """Areas by synthesis of the first chips of the front, by their hash."""
    from sley.explore.area.synthesis import synthesise_all

    found = sorted(on_front(outcomes), key=lambda one: one.objectives[objectives[0]])
    chips = {one.design.config.hash: one.design.config for one in found if one.design is not None}

    def ended(config: ChipConfig, area: Area) -> None:
        typer.echo(f"synthesised: {area}; the model: {area_of(config)}", err=True)

    return synthesise_all(list(chips.values())[:count], jobs, ended)


def _print(outcomes: list[Outcome], objectives: tuple[str, ...]) -> None:
    """The front, and what did not run."""
    console = Console()
    console.width = max(console.width, 120)
    table = Table("design", *outcomes[0].point, *objectives, title="Pareto front", title_justify="left")
    found = [row for row in rows(outcomes) if row["pareto"]]
    for row in sorted(found, key=lambda row: row[objectives[0]]):
        numbers = [f"{row[name]:,}" if isinstance(row[name], int) else f"{row[name]:.4g}" for name in objectives]
        table.add_row(str(row["design"]), *(str(row[name]) for name in outcomes[0].point), *numbers)
    console.print(table)
    states = {status: [one for one in outcomes if one.status == status] for status in (DONE, "infeasible", FAILED)}
    console.print(f"{len(outcomes)} designs: {', '.join(f'{len(part)} {name}' for name, part in states.items())}")
    for one in states[FAILED]:
        console.print(f"failed: {one.point}: {one.reason}", highlight=False)
    if states[FAILED]:
        console.print("--retry runs them once more")
