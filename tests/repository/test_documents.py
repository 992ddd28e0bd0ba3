"""Runs the code of the guides and the examples."""

import gc
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from page_code import LANGUAGES, MARKS, PAGES, ROOT, Block, check_commands, page_blocks, run_by_hand, run_by_tests

from sley.abi.config import PRESETS
from sley.sim.build.cache import cached
from sley.sim.build.toolchain import run_tool

EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


OWN_TESTS = {
    "docs/guides/fast-engine-debugging.md": "tests/sim/fast/test_guide.py",
    "docs/guides/fast-own-design.md": "tests/sim/fast/test_own_design_guide.py",
}
"""Of pages whose code takes a compiler some time, and of which more is checked."""
EXTRAS = {"docs/guides/networks.md": "onnx", "docs/guides/triton.md": "triton", "docs/guides/pytorch.md": "torch"}
"""Pages whose code needs an extra that ``test`` does not bring."""
PROCESSES = ("docs/guides/pytorch.md",)
"""Pages whose code changes a process for good: by a second device, for example."""


def test_pages_with_tests_of_their_own() -> None:
    for page, test in OWN_TESTS.items():
        assert Path(page).name in (ROOT / test).read_text()


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")  # Inductor's own
@pytest.mark.filterwarnings("ignore:.* created but never used")
@pytest.mark.parametrize("page", [page for page in PAGES if page_blocks(page, "python") and page not in OWN_TESTS])
def test_python(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks of a page, one after the other, in a folder of their own."""
    if page in EXTRAS:
        pytest.importorskip(EXTRAS[page], reason=f"the extra {EXTRAS[page]} is not installed")
    monkeypatch.chdir(tmp_path)
    code = tmp_path / "page.py"  # Amaranth takes names of signals from the source
    blocks = page_blocks(page, "python")
    code.write_text(re.sub(r"fast:base(\??)", with_cycles, "\n".join(block.text for block in blocks)))
    if page in PROCESSES:
        shown = run_tool([sys.executable, str(code)])
    else:
        _run_here(page, code)
        shown = capsys.readouterr().out
    assert shown or not any("\nprint(" in f"\n{block.text}" for block in blocks)
    assert page != "README.md" or "[64 64 64" in shown


def with_cycles(engine: re.Match[str]) -> str:
    """The exact model in the place of the gateware's engine: quicker to build, and as exact."""
    return f"model:base?cycles=on{'&' if engine[1] else ''}"


def _run_here(page: str, code: Path) -> None:
    names = {"__name__": "page", "transport": MagicMock()} if page == "docs/guides/cocotb.md" else {"__name__": "page"}
    exec(compile(code.read_text(), str(code), "exec"), names)
    names.clear()
    gc.collect()  # Amaranth warns now of what a page shows and does not run


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


def _slow(block: Block) -> object:
    return pytest.param(block, id=block.place, marks=[pytest.mark.slow] if "slow" in block.marks else [])


@pytest.mark.parametrize("block", [_slow(block) for block in run_by_tests()])
def test_commands_run(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a plain shell, in a folder that has the files that the pages speak of. What clears the cache gets one of its
    own."""
    if "sley cache" in block.text:
        monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "cache"))
        cached("fast", "something", lambda output, scratch: output.touch())
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "kernel.s").write_text("end\n")
    (tmp_path / "mine.json").write_text(PRESETS["nano"].replace(name="mine").to_json())
    shutil.copytree(ROOT / "tests/cocotb", tmp_path / "tests/cocotb")
    ended = subprocess.run(
        ["sh", "-ec", block.text], cwd=tmp_path, capture_output=True, text=True, timeout=800, stdin=subprocess.DEVNULL
    )
    assert ended.returncode == 0, f"{block.place}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"


@pytest.mark.slow
def test_the_readme_shows_what_the_demo_prints() -> None:
    (shown,) = (block.text for block in page_blocks("README.md", "") if "fp32 (host)" in block.text)
    printed = subprocess.run(
        [sys.executable, "-m", "sley.runtime.cli", "demo", "--engine", "fast:base"],
        capture_output=True,
        text=True,
        check=True,
        timeout=800,
    ).stdout
    rows = [re.findall(r"[\d.,]+%|[\d,]{5,}", line) for line in shown.splitlines() if "%" in line]
    for row in rows:
        found = [line for line in printed.splitlines() if all(number in line for number in row)]
        assert found, f"the demo does not print {', '.join(row)}: {printed}"
    assert shown.splitlines()[-1] in printed


def _recorded() -> list[list[str]]:
    """Rows of the record of commands that no test runs: pages, command, last run, commit, result."""
    text = (ROOT / "docs/verification/documents.md").read_text()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in re.findall(r"(?m)^\| (.*`.*) \|$", text)]


def test_the_record_has_every_command_that_no_test_runs() -> None:
    recorded = [(page, row[1]) for row in _recorded() for page in re.findall(r"`([^`]+)`", row[0])]
    there = {(page, f"`{line}`") for page in PAGES for line, _ in run_by_hand(page)}
    assert len(recorded) == len(set(recorded))
    assert (sorted(there - set(recorded)), sorted(set(recorded) - there)) == ([], []), "missing, and of no page"


def test_the_record_says_when_and_what() -> None:
    board = {f"`{line}`" for page in PAGES for line, needs_board in run_by_hand(page) if needs_board}
    for pages, command, last, commit, result in _recorded():
        if last in ("never: no board yet", "none on record"):
            assert (last.startswith("never"), commit, result) == (command in board, "", ""), f"{pages} {command}"
        else:
            assert re.fullmatch(r"\d{4}-\d\d-\d\d", last), f"{pages} {command}: {last} is no date"
            assert re.fullmatch(r"`[0-9a-f]{7,40}`", commit), f"{pages} {command}: {commit} is no commit"
            assert result, f"{pages} {command}: no result"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("sley bench gemm --int8", "No such option"),
        ("sley bench gem", "No such command"),
        ("sley tune 4 4", "give M N K, each 1 or more"),
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
@pytest.mark.parametrize("engine", ["model:nano?memory=1M&cycles=on", "model:quad?memory=1M&cycles=on"])
def test_example(name: str, engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", [name, engine])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    assert capsys.readouterr().out
