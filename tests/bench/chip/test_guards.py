"""The commands ``sley bench`` that guard promises: each is there, and fails when one is missed."""

import inspect
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sley.bench.chip import guards
from sley.bench.chip.guards import GUARDS
from sley.runtime.cli import app

NAMES = [*GUARDS, "quad"]
FOLDER = Path(guards.__file__).parent


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", *arguments])


def module_of(name: str) -> str:
    return f"sley.bench.chip.{name.replace('-', '_')}"


def test_every_file_of_the_folder_is_a_guard() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"guards"}
    assert files == {name.replace("-", "_") for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_help(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    text = GUARDS.get(name) or inspect.getdoc(guards.quad)
    assert text is not None
    assert text in " ".join(result.output.split())


@pytest.mark.parametrize("name", NAMES)
def test_a_missed_promise_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module(module_of(name))
    assert inspect.signature(module.measure).return_annotation == list[str]
    monkeypatch.setattr(module, "measure", lambda *_: ["8 x 8: 3 cycles, promised 2", "4 x 4: 2 cycles, promised 1"])
    result = run(name)
    assert (result.exit_code, result.stderr) == (1, "8 x 8: 3 cycles, promised 2\n4 x 4: 2 cycles, promised 1\n")
    monkeypatch.setattr(module, "measure", lambda *_: [])
    result = run(name)
    assert (result.exit_code, result.output) == (0, "")


def test_quad_takes_the_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    module = import_module(module_of("quad"))
    monkeypatch.setattr(module, "measure", lambda largest: seen.append(largest) or [])
    for arguments in ((), ("256",)):
        assert run("quad", *arguments).exit_code == 0
    assert seen == [1024, 256]
    assert run("quad", "0").exit_code == 2


def test_a_promise_of_the_chip_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard itself, on a small engine: it prints its table and names what it misses."""
    module = import_module(module_of("shares"))
    monkeypatch.setattr(module, "ENGINE", "model:nano?memory=1M&cycles=on")
    monkeypatch.setattr(module, "SHAPES", [(8, 8, 8), (16, 8, 8)])
    monkeypatch.setattr(module, "PROMISED", {(16, 8, 8): 1e9})
    result = run("shares")
    assert result.exit_code == 1
    assert result.stdout.count("16 x 8 x 8") == 2
    assert result.stderr.splitlines()[-1].startswith("16 x 8 x 8: ")  # a model may have been compiled before
