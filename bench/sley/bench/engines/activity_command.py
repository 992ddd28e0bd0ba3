"""The command ``sley bench activity``."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table


def activity(
    chip: Annotated[str, typer.Argument(help="A preset or a configuration file.")] = "base",
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds, of which the best counts.")] = 5,
) -> None:
    """What each part of a chip costs on engine fast, idle and busy, and what a type costs that is not used."""
    from sley.abi.config import configuration
    from sley.bench.engines.activity import activity as measure

    config = configuration(chip)
    found = measure(config, rounds)
    works = list(found.cycle)
    title = f"{config.name} on fast, ns of a simulated cycle"
    table = Table("part", "number", *works, title=title)
    for part in found.parts:
        table.add_row(part.name, f"{part.count:,}", *(f"{part.nanoseconds.get(work, 0):.1f}" for work in works))
    inside = [sum(part.nanoseconds.get(work, 0) for part in found.parts) for work in works]
    table.add_row(
        "outside of parts", "", *(f"{found.cycle[w] - own:.1f}" for w, own in zip(works, inside, strict=True))
    )
    table.add_row("a cycle", "", *(f"{found.cycle[work]:.1f}" for work in works))
    Console().print(table)
    for name, ratio in found.unused.items():
        typer.echo(f"int8 on a chip with {name}, against one without: {ratio:.3f} times as long")
