"""The commands ``sley zoo``: public networks, run and measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.driver import BadRequest
from sley.examples.zoo.page import zoo_page
from sley.examples.zoo.registry import MODELS, model_of
from sley.examples.zoo.results import Result, keep, read_results
from sley.examples.zoo.subject import Model
from sley.runtime import Device
from sley.runtime.options import ENGINE_NAMES

VALUES, CYCLES = "model:base?memory=1G&cycles=on", "model:base?memory=1G&cycles=on&values=off"
zoo_app = typer.Typer(help="Public networks: list, run and measure them.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="A model that sley zoo list names.")]
Precision = Annotated[
    str | None, typer.Option("--precision", "-p", help="Of products of float32: medium, high or highest.")
]
Weights = Annotated[
    str | None, typer.Option("--weights", "-w", help="A set of weights that the model has: package or random.")
]
Keep = Annotated[bool, typer.Option("--keep", help="Enter the result into the file that the page is made of.")]


@zoo_app.command(name="list")
def list_models() -> None:
    """Models, where their weights are from, and what was measured."""
    console, table, kept = Console(), Table("model", "", "weights", "cycles", "of its bound"), read_results()
    for name, model in MODELS.items():
        found = [result for result in kept.values() if result.model == name and result.cycles]
        best = min(found, key=lambda result: result.cycles, default=None)
        cells = ("", "") if best is None else (f"{best.cycles:,} ({best.precision})", f"{best.share:.0%}")
        table.add_row(name, model.about, model.source, *cells)
    console.print(table)


@zoo_app.command()
def run(
    name: Name,
    precision: Precision = None,
    weights: Weights = None,
    engine: Annotated[str, typer.Option(*ENGINE_NAMES, help="Engine URL.")] = VALUES,
    keep_it: Keep = False,
) -> None:
    """Run a model once: agreement with its float reference, cycles, memory."""
    _print(_measured(model_of(name), precision, weights, engine, False), keep_it)


@zoo_app.command()
def report(
    name: Name,
    precision: Precision = None,
    launches: Annotated[int, typer.Option("--launches", "-l", min=0, help="So many of the longest launches.")] = 0,
    engine: Annotated[str, typer.Option(*ENGINE_NAMES, help="Engine URL.")] = CYCLES,
    keep_it: Keep = False,
) -> None:
    """Cycles and memory of a model, without values; with --launches its longest launches, and cycles by operator."""
    result = _measured(model_of(name), precision, None, engine, launches > 0)
    _print(result, keep_it)
    if launches and result.costs:
        _print_launches(result, launches)


@zoo_app.command()
def page(
    write: Annotated[Path | None, typer.Option(help="A file for the page; without it, it is printed.")] = None,
) -> None:
    """The page of the reference, of the results that are kept."""
    text = zoo_page(read_results())
    if write is None:
        typer.echo(text, nl=False)
    else:
        write.write_text(text)


def _measured(model: Model, precision: str | None, weights: str | None, engine: str, launches: bool) -> Result:
    chosen, own = precision or model.precisions[0], weights or model.weights[0]
    for given, known, what in ((chosen, model.precisions, "precision"), (own, model.weights, "weights")):
        if given not in known:
            raise BadRequest(f"{what} {given!r} of {model.name}; it has {', '.join(known)}")
    from sley.examples.zoo.measure import measure

    subject = None if model.load is None else model.load(own)
    with Device.open(engine) as device:
        if subject is not None:
            return measure(device, model.name, subject, chosen, own, engine, launches)
        assert model.measure is not None
        return model.measure(device, chosen)


def _print(result: Result, keep_it: bool) -> None:
    console, table = Console(), Table(show_header=False)
    table.add_row("model", f"{result.model}, precision {result.precision}, weights {result.weights}")
    if result.error is not None:
        table.add_row("largest difference", f"{result.error:.2g} of the largest value; {result.reference}")
    if result.classes:
        table.add_row("classes", result.classes)
    if result.cycles:
        table.add_row("cycles", f"{result.cycles:,}")
        table.add_row("of its bound", f"{result.share:.1%} of {result.bound:,}: {result.limit}")
    table.add_row("launches", f"{result.launches:,}")
    table.add_row("time to compile", f"{result.compile_seconds} s")
    table.add_row("memory", f"weights {result.weights_bytes:,} bytes")
    if result.before:
        table.add_row("", f"intermediate arrays {result.before:,} bytes, planned {result.after:,}")
    if result.note:
        table.add_row("", result.note)
    console.print(table)
    if keep_it:
        keep(result)


def _print_launches(result: Result, count: int) -> None:
    console = Console()
    total = sum(cost.cycles for cost in result.costs)
    table = Table("cycles", "of all", "operator", "program", "of the MAC bound")
    parts = result.bound / max(sum(cost.macs for cost in result.costs), 1)
    for cost in sorted(result.costs, key=lambda cost: -cost.cycles)[:count]:
        share = f"{cost.macs * parts / cost.cycles:.0%}" if cost.macs else ""
        table.add_row(f"{cost.cycles:,}", f"{cost.cycles / total:.1%}", cost.operator, cost.program, share)
    console.print(table)
    kinds: dict[str, int] = {}
    for cost in result.costs:
        kind = cost.operator.split()[0] + (", product" if cost.macs else "")
        kinds[kind] = kinds.get(kind, 0) + cost.cycles
    table = Table("operators", "cycles", "of all")
    for kind, cycles in sorted(kinds.items(), key=lambda item: -item[1]):
        table.add_row(kind, f"{cycles:,}", f"{cycles / total:.1%}")
    console.print(table)
