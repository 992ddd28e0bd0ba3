"""The commands ``sley study``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sley.driver import BadRequest
from sley.examples.studies.page import index, write
from sley.examples.studies.registry import STUDIES
from sley.examples.studies.study import shown

study_app = typer.Typer(help="What a change of the hardware does to a network.", no_args_is_help=True)


@study_app.command(name="list")
def list_studies() -> None:
    """All studies."""
    table = Table("study", "question")
    for study in STUDIES.values():
        table.add_row(study.name, study.question)
    Console().print(table)


@study_app.command()
def run(
    name: Annotated[str, typer.Argument(help="A study that sley study list names.")],
    small: Annotated[bool, typer.Option("--small", help="A workload of seconds.")] = False,
    folder: Annotated[Path | None, typer.Option("--write", help="Folder for its page and its picture.")] = None,
) -> None:
    """Run a study, and print what it found."""
    if name not in STUDIES:
        raise BadRequest(f"no study {name!r}; there are {', '.join(STUDIES)}")
    study = STUDIES[name]
    result = study.run(small)
    table = Table(*result.columns, title=study.question)
    for row in result.rows:
        table.add_row(*map(shown, row))
    Console().print(table)
    if folder is not None:
        write(folder, study, result)
        (folder / "index.md").write_text(index(list(STUDIES.values())))
