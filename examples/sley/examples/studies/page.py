"""The pages of studies in the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sley.examples.studies.picture import picture
from sley.examples.studies.study import Result, Study, shown


def page(study: Study, result: Result) -> str:
    """Question, method, picture and table of a study, in Markdown."""
    head = f"| {' | '.join(result.columns)} |\n|{' --- |' * len(result.columns)}\n"
    rows = "".join(f"| {' | '.join(map(shown, row))} |\n" for row in result.rows)
    return (
        f"# {study.question}\n\nWritten by `sley study run {study.name} --write docs/studies`; do not edit.\n\n"
        f"{study.text}\n\n![{study.question}]({study.name}.svg)\n\n{head}{rows}"
    )


def index(studies: Sequence[Study]) -> str:
    """The first page."""
    rows = "".join(f"| [{study.name}]({study.name}.md) | {study.question} |\n" for study in studies)
    return (
        "# Studies\n\nWhat a change of the hardware does to a network. Each study is a file of "
        "`examples/sley/examples/studies`, a page like a script of one's own, and one command makes its page and its "
        "picture: `sley study run NAME --write docs/studies`. Cycles are those of the exact model, so of the gateware. "
        "`sley study run NAME --small` takes seconds.\n\n"
        f"| study | question |\n| --- | --- |\n{rows}"
    )


def write(folder: Path, study: Study, result: Result) -> None:
    """The page and the picture of a study."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{study.name}.md").write_text(page(study, result))
    (folder / f"{study.name}.svg").write_text(picture(result, study.question))
