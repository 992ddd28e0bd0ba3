"""``sley bench energy``: estimates against toggles of the netlist, and against published accelerators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from sley.bench.energy.accelerators import Compared

WIDTH = 150
"""Columns of the tables at least."""


def energy(
    layers: Annotated[
        list[str] | None, typer.Option("--layer", "-l", help="Layers of ResNet-50, all if not given; repeatable.")
    ] = None,
    toggles: Annotated[bool, typer.Option(help="Compare with toggles of the netlist, on engine fast.")] = True,
) -> None:
    """Energy from counters: against toggles of the netlist, and against published accelerators of int8."""
    from sley.bench.energy.accelerators import compare

    console = Console()
    console.width = max(console.width, WIDTH)
    if toggles:
        for table in _toggle_tables():
            console.print(table)
    found = compare(lambda text: typer.echo(text, err=True), layers or ())
    for table in _accelerator_tables(found):
        console.print(table)


def _accelerator_tables(found: Sequence[Compared]) -> list[Table]:
    from sley.runtime.energy.activity import ACCUMULATORS, UNITS
    from sley.runtime.energy.estimate import LEAKAGE

    whole = Table("accelerator", "chip", "work", title="pJ a MAC on the chip, without DRAM")
    for heading in ("MACs", "cycles", "published", "7nm", "45nm", "all tables", "at 16 nm", "without sums"):
        whole.add_column(heading, justify="right")
    for c in found:
        low, high = c.spread
        numbers = f"{c.macs:,}", f"{c.cycles:,}", f"{c.published:.3f}", f"{c.each('7nm'):.3f}", f"{c.each('45nm'):.3f}"
        scaled = (f"{value:.3f} ({value / c.published:.2f} x)" for value in (c.between(), c.between(ACCUMULATORS)))
        whole.add_row(c.name, c.chip, c.work, *numbers, f"{low:.3f} to {high:.3f}", *scaled)
    parts = Table("accelerator", "table", title="where it goes, pJ a MAC")
    units = [unit for unit in (*UNITS, LEAKAGE) if any(c.of_unit("7nm", unit) for c in found)]
    for unit in units:
        parts.add_column(unit, justify="right")
    for c in found:
        for node in c.estimates:
            parts.add_row(c.name, node, *(f"{c.of_unit(node, unit):.3f}" for unit in units))
    return [whole, parts]


def _toggle_tables() -> list[Table]:
    from sley.bench.energy.toggles import INSTANCES, WITHOUT_DATA, fits, measure_toggles

    runs = measure_toggles()
    table = Table("program", title="nJ / thousands of bits of registers that changed, nano on fast")
    for heading in ("cycles", *INSTANCES):
        table.add_column(heading, justify="right")
    for run in runs:
        cells = (f"{run.joules[unit] * 1e9:.2f} / {run.toggles[unit] / 1000:,.0f}" for unit in INSTANCES)
        table.add_row(run.name, f"{run.cycles:,}", *cells)
    tables = [table]
    changing = [run for run in runs if run.name not in WITHOUT_DATA]
    for title, chosen in (("all programs", runs), (f"without {', '.join(WITHOUT_DATA)}", changing)):
        table = Table("unit", title=f"energy as a straight line over toggles: {title}")
        for heading in ("pJ a toggle", "R²", "rank correlation", "farthest from the line", "by, of the largest"):
            table.add_column(heading, justify="right")
        for fit in fits(chosen):
            name, distance = fit.worst
            numbers = f"{fit.picojoules:.4f}", f"{fit.explained:.3f}", f"{fit.rank:.3f}"
            table.add_row(fit.unit, *numbers, name, f"{distance:+.1%}")
        tables.append(table)
    return tables
