"""Runs the code of the guides and the examples."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("page", ["programmers-guide", "driver-guide", "first-kernel"])
def test_guide(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) > 3
    code = "\n".join(blocks).replace("fast:base", "model:base")
    exec(compile(code, page, "exec"), {"__name__": page})
    assert capsys.readouterr().out


def test_readme(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 1
    exec(compile(blocks[0].replace("fast:base", "model:base"), "README.md", "exec"), {"__name__": "readme"})
    assert "[64 64 64" in capsys.readouterr().out


def test_the_page_of_the_examples_names_each() -> None:
    page = (ROOT / "examples" / "README.md").read_text()
    digits = (ROOT / "examples" / "sley" / "examples" / "digits").glob("*.py")
    for name in (*EXAMPLES, *(path.name for path in digits)):
        assert f"`{name}`" in page, f"examples/README.md does not name {name}"


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("engine", ["model:nano?memory=1M", "model:quad?memory=1M"])
def test_example(name: str, engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", [name, engine])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    assert capsys.readouterr().out
