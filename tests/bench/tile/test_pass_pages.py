"""Pages on the passes: current, and of kernels that each pass changes."""

from pathlib import Path

import pytest

from sley.bench.tile.pass_pages import EXAMPLES, MODULES, before_and_behind, pages

FOLDER = Path(__file__).parents[3] / "docs" / "theory" / "passes"


def test_pages_are_current() -> None:
    made = pages()
    assert {path.stem for path in FOLDER.glob("*.md")} == set(made)
    for name, text in made.items():
        assert (FOLDER / f"{name}.md").read_text() == text, f"{name} is another one: run sley bench passes"


@pytest.mark.parametrize("name", MODULES)
def test_each_changes_its_kernel(name: str) -> None:
    before, behind = before_and_behind(name)
    assert before != behind
    assert name in EXAMPLES
