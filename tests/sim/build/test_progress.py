"""What a slow step says while it runs, and how its estimate comes about."""

import io
import json
from pathlib import Path

import pytest

from sley.sim.build import progress as module
from sley.sim.build.progress import Step, progress


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the module sees, and an empty cache."""
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "cache"))
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def run(clock: list[float], step: Step | None, seconds: float) -> None:
    with progress("Doing it", step) as show:
        show("half of it")
        clock[0] += seconds


def test_the_estimate_is_what_it_took_before(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """For each unit of the input; before the first time, what the caller says."""
    run(clock, Step("work", 20, 0.5), 40)
    run(clock, Step("work", 10, 0.5), 20)
    run(clock, Step("work", 600, 0.5), 1)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["Doing it, about 10 s ...", "Doing it, about 20 s ...", "Doing it, about 20 min ..."]


def test_short_steps(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """They are announced without an estimate, and say nothing about longer ones."""
    run(clock, Step("work", 1, 0.9), 0.9)
    run(clock, Step("work", 10, 0.9), 9)
    run(clock, None, 0.1)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["Doing it ...", "Doing it, about 9 s ...", "Doing it ..."]


def test_a_small_input_that_took_long(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """It says nothing about larger ones: what it took does not come from its size."""
    run(clock, Step("work", 1, 0.001), 2)
    run(clock, Step("work", 10_000, 0.001), 10)
    assert capsys.readouterr().err.splitlines() == ["Doing it ...", "Doing it, about 10 s ..."]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"work": "much"}'])
def test_a_damaged_file_is_as_none(clock: list[float], tmp_path: Path, text: str) -> None:
    file = tmp_path / "cache" / "rates.json"
    file.write_text(text)
    assert Step("work", 10, 0.5).expected == 5
    run(clock, Step("work", 10, 0.5), 30)
    assert json.loads(file.read_text()) == {"work": 3}


def test_a_step_that_fails_says_nothing_of_its_time(clock: list[float], tmp_path: Path) -> None:
    def fail() -> None:
        with progress("Doing it", Step("work", 10, 0.5)):
            clock[0] += 30
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert not (tmp_path / "cache" / "rates.json").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done now, and the estimate."""
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(module.sys, "stderr", terminal := Terminal())
    with progress("Doing it", Step("work", 20, 0.5)) as show:
        show("half of it")
    assert "Doing it: half of it" in terminal.getvalue()
    assert "of about 10 s" in terminal.getvalue()
