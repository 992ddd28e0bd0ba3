"""All commands ``sley bench``: where the documentation names them."""

import re
from pathlib import Path

import pytest
import typer

from sley.bench.command import bench_app
from sley.runtime.cli import app

ROOT = Path(__file__).parents[2]
NAMES = sorted(typer.main.get_group(bench_app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", ["cli", "benchmarks"])
def test_the_pages_list_every_command(page: str) -> None:
    text = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
    assert sorted(set(re.findall(r"(?m)^\| `sley bench ([\w-]+)", text))) == NAMES


def test_the_page_lists_every_command_of_the_command_line() -> None:
    text = (ROOT / "docs" / "guides" / "cli.md").read_text()
    listed = [name for row in re.findall(r"(?m)^\| (`sley .*?) \|", text) for name in re.findall(r"`sley (\w+)", row)]
    assert set(listed) == set(typer.main.get_group(app).commands)  # type: ignore[attr-defined]
