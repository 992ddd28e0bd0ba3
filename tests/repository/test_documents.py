"""Runs the code of the guides and the examples."""

import gc
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from page_code import LANGUAGES, MARKS, PAGES, ROOT, check_commands, page_blocks, quick_commands

from sley.sim.build.cache import cached

EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


OWN_TESTS = {
    "docs/guides/fast-engine-debugging.md": "tests/sim/fast/test_guide.py",
    "docs/guides/fast-own-design.md": "tests/sim/fast/test_own_design_guide.py",
}
"""Of pages whose code takes a compiler some time, and of which more is checked."""


def test_pages_with_tests_of_their_own() -> None:
    for page, test in OWN_TESTS.items():
        assert Path(page).name in (ROOT / test).read_text()


@pytest.mark.filterwarnings("ignore:.* created but never used")
@pytest.mark.parametrize("page", [page for page in PAGES if page_blocks(page, "python") and page not in OWN_TESTS])
def test_python(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks of a page, one after the other, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    code = tmp_path / "page.py"  # Amaranth takes names of signals from the source
    blocks = page_blocks(page, "python")
    code.write_text("\n".join(block.text for block in blocks).replace("fast:base", "model:base"))
    names = {"__name__": "page", "transport": MagicMock()} if page == "docs/guides/cocotb.md" else {"__name__": "page"}
    exec(compile(code.read_text(), str(code), "exec"), names)
    names.clear()
    gc.collect()  # Amaranth warns now of what a page shows and does not run
    shown = capsys.readouterr().out
    assert shown or not any("\nprint(" in f"\n{block.text}" for block in blocks)
    assert page != "README.md" or "[64 64 64" in shown


@pytest.mark.parametrize("page", PAGES)
def test_marks(page: str) -> None:
    """A block of code has one of the languages and marks that are looked at here."""
    for block in page_blocks(page):
        assert block.language in (*LANGUAGES, ""), f"{block.place}: no test reads {block.language}"
        assert block.marks <= MARKS, f"{block.place}: {block.marks - MARKS} is none of {', '.join(sorted(MARKS))}"
        looks_run = re.match(r"\s*(\$ )?(sley|pip|pytest|python3?|cd) ", block.text)
        assert block.language or not looks_run, f"{block.place}: write ```sh before commands"


@pytest.mark.parametrize("page", [page for page in PAGES if page_blocks(page, "sh")])
def test_commands_exist(page: str) -> None:
    """Commands and options of each line, whatever it takes to run it."""
    for block in page_blocks(page, "sh"):
        check_commands(block.text, block.place)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if quick_commands(page)])
def test_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that take seconds, in a plain shell, with a cache of their own."""
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "kernel.s").write_text("end\n")
    cached("fast", "something", lambda output, scratch: output.touch())
    for block in quick_commands(page):
        subprocess.run(["sh", "-ec", block.text], cwd=tmp_path, check=True, timeout=120)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("sley bench gemm --int8", "No such option"),
        ("sley bench gem", "No such command"),
        ("sley tune 4 4", "MissingParameter"),
        ("X=1 sley demo -n many", "valid integer"),
        ("pytest tests/absent", "tests/absent does not exist"),
        ("cd tests && python absent.py", "absent.py does not exist"),
        ("pip install 'sley[absent]'", "there is no extra absent"),
        ("sleep 3", "no test knows the command sleep"),
    ],
)
def test_wrong_commands_are_noticed(line: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(problem)):
        check_commands(line, "here")


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
