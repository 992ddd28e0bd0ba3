"""The command ``sley bench exact``."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from sley.bench.engines.works import works_of

if TYPE_CHECKING:
    from sley.runtime import Device

ENGINES = {
    "fast": "fast:{}",
    "values and cycles": "model:{}?cycles=on",
    "cycles alone": "model:{}?cycles=on&values=off",
    "values alone": "model:{}",
}


def exact(
    chip: Annotated[str, typer.Argument(help="A preset or a configuration file.")] = "base",
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds, of which the best counts.")] = 3,
) -> None:
    """Cycles of engine model against those of the gateware, and how much sooner it has them."""
    from rich.console import Console
    from rich.table import Table

    from sley.runtime import Device

    table = Table("work", "engine", "cycles", "ms", "fast takes", title=f"{chip}, processor time")
    differ = False
    with ExitStack() as stack:
        devices = {name: stack.enter_context(Device.open(url.format(chip))) for name, url in ENGINES.items()}
        for name, work in works_of(devices["fast"]).items():
            judged, reference = 0, 0.0
            for engine, device in devices.items():
                cycles, best = _measured(device, work(device), rounds, engine != "values alone")
                if engine == "fast":
                    judged, reference = cycles, best
                differ |= bool(cycles) and cycles != judged
                counted = f"{cycles:,}" if cycles else ""
                table.add_row(name, engine, counted, f"{best * 1e3:.1f}", f"{reference / best:.1f} x")
            table.add_section()
    Console().print(table)
    if differ:
        typer.echo("error: cycles differ from those of the gateware", err=True)
        raise typer.Exit(1)


def _measured(device: "Device", run: "Callable[[], object]", rounds: int, timed: bool) -> tuple[int, float]:
    """Cycles, 0 if the engine has none, and seconds of the best round; the first one is not counted."""
    cycles, best = 0, float("inf")
    for number in range(rounds + 1):
        start = time.process_time()
        if timed:
            with device.stream.timed() as timing:
                run()
            cycles = timing.cycles
        else:
            run()
        device.synchronize()
        if number:
            best = min(best, time.process_time() - start)
    return cycles, best
