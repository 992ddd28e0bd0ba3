"""The command ``sley bench sanitize``."""

import time
from typing import Annotated

import typer

from sley.bench.engines.works import works_of

PROMISE = 3.0
"""A sanitized run takes at most so many times as long as one that is not."""


def sanitize(
    chip: Annotated[str, typer.Argument(help="A preset or a configuration file.")] = "base",
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds, of which the best counts.")] = 5,
) -> None:
    """How much longer programs take on engine model with all sanitizers."""
    from rich.console import Console
    from rich.table import Table

    from sley.runtime import Device
    from sley.sim.model.sanitize.kinds import Sanitizer

    every = ",".join(sanitizer.name.lower() for sanitizer in Sanitizer)
    table = Table("work", "plain, ms", f"sanitize={every}, ms", "ratio", title=f"model:{chip}, processor time")
    worst = 0.0
    with Device.open(f"model:{chip}") as plain, Device.open(f"model:{chip}?sanitize={every}") as watched:
        for name, work in works_of(plain).items():
            pair = [(device, work(device)) for device in (plain, watched)]
            best = [float("inf")] * 2
            for number in range(rounds + 1):
                for index, (device, run) in enumerate(pair):
                    start = time.process_time()
                    run()
                    device.synchronize()
                    if number:
                        best[index] = min(best[index], time.process_time() - start)
            ratio = best[1] / best[0]
            worst = max(worst, ratio)
            table.add_row(name, f"{best[0] * 1e3:.1f}", f"{best[1] * 1e3:.1f}", f"{ratio:.2f}")
    Console().print(table)
    if worst > PROMISE:
        typer.echo(f"error: a ratio is above {PROMISE}", err=True)
        raise typer.Exit(1)
