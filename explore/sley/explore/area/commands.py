"""``sley fpga estimate``, ``sample-area`` and ``fit-area``: the area model, and how it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sley.abi.config import configuration
from sley.explore.area.model import COEFFICIENTS, RESOURCES, area_of, block_areas
from sley.fpga.flow.toolchain import require_tools


def estimate(
    config: Annotated[str, typer.Argument(help="Preset of a chip, or a JSON file like sley.json.")] = "nano",
) -> None:
    """Print what a chip takes on an ECP5 by the fitted model, and each of its blocks alone; takes no time."""
    from rich.console import Console
    from rich.table import Table

    chip = configuration(config)
    table = Table("block", *RESOURCES, title=f"{chip.name} on an ECP5, by the model", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, area in (*block_areas(chip).items(), ("chip, flat", area_of(chip))):
        table.add_row(name, *(f"{getattr(area, resource):,}" for resource in RESOURCES))
    Console().print(table)
    typer.echo("an ECP5-85F has room for it" if area_of(chip).fits else "more than an ECP5-85F has")


def sample_area() -> None:
    """Synthesise the sample of blocks that the area model is fitted to, but for what is there; takes hours."""
    require_tools()
    from sley.explore.area.fit import SAMPLE, read_samples, write_samples
    from sley.explore.area.synthesis import synthesise_sample

    known = read_samples() if SAMPLE.exists() else []

    def ended(one: object) -> None:
        typer.echo(f"{one}", err=True)

    write_samples(synthesise_sample(known, ended))


def fit_area(
    write: Annotated[Path, typer.Option(help="File for the coefficients.")] = COEFFICIENTS,
) -> None:
    """Fit the area model to the sample, and write its coefficients."""
    from sley.explore.area.fit import fitted, read_samples

    write.write_text(fitted(read_samples()))
