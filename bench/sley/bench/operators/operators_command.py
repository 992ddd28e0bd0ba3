"""The command ``sley bench operators``."""

from pathlib import Path
from typing import Annotated

import typer


def operators(
    write: Annotated[
        Path | None, typer.Option("--write", help="A file for the page, in place of the terminal.")
    ] = None,
) -> None:
    """All operators of nn: types, errors, cycles on base against their bounds, as a page of Markdown."""
    from sley.bench.operators.report import measure_all, page

    text = page(measure_all())
    if write is None:
        typer.echo(text)
    else:
        write.write_text(text)
