"""The command ``sley bench passes``."""

from pathlib import Path
from typing import Annotated

import typer


def passes(
    write: Annotated[Path, typer.Option("--write", help="The folder of the pages.")] = Path("docs/theory/passes"),
) -> None:
    """Pages on the passes of the tile compiler: a kernel before and behind each."""
    from sley.bench.tile.pass_pages import pages

    write.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (write / f"{name}.md").write_text(text)
    typer.echo(f"{len(pages())} pages in {write}")
