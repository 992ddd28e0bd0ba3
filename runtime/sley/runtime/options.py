"""Options that commands of several portions have."""

from typing import Annotated

import typer

ENGINE_NAMES = ("--engine", "--device", "-e")
"""One option: simulators are engines, a board is a device, and a URL opens either."""
Engine = Annotated[
    str, typer.Option(*ENGINE_NAMES, help="Engine URL, for example fast:base, pysim:nano, model:quad?memory=128M.")
]
