"""The command ``sley demo``; found through the entry points ``sley.commands``."""

from typing import Annotated

import typer
from rich.console import Console

from sley.runtime.options import ENGINE_NAMES


def demo(
    engine: Annotated[
        str | None,
        typer.Option(*ENGINE_NAMES, help="Engine URL; default fast:base, or pysim:nano without a compiler."),
    ] = None,
    images: Annotated[
        int | None, typer.Option("--images", "-n", min=1, help="Test images; default all 360 (few on pysim).")
    ] = None,
) -> None:
    """Classify handwritten digits with a small MLP and a small CNN on the device."""
    from sley.examples.digits.run import run_demo

    run_demo(engine, images, Console())
