"""``sley bench sim``: engines compared in host time, on the smallest chip."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from sley.bench.engines import speed
from sley.bench.engines.builds import start_times
from sley.bench.engines.contenders import Contender, environment
from sley.bench.engines.figures import (
    BUILD,
    BUSY,
    IDLE,
    LIBRARY,
    SNAPSHOT,
    START,
    TEXT,
    WRITE,
    Figure,
    speedups,
)
from sley.bench.engines.speed import compare
from sley.bench.gemm.measure import WrongResultError
from sley.driver import EngineError, open_transport
from sley.runtime.cli import app
from sley.sim.build.toolchain import find_c_compiler, find_compiler, find_verilator

pytestmark = pytest.mark.skipif(
    not (find_c_compiler() and find_compiler() and find_verilator()), reason="needs a compiler and Verilator"
)


def numbers(path: Path) -> dict[tuple[str, str, str], float]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["preset"], row["engine"], row["quantity"]): float(row["value"]) for row in rows}


@pytest.mark.campaign
def test_command(tmp_path: Path) -> None:
    path = tmp_path / "numbers.csv"
    arguments = ["nano", "--size", "8", "--rounds", "1", "--no-build", "--flags", "", "--parts", "--csv", str(path)]
    result = CliRunner().invoke(app, ["bench", "sim", *arguments])
    assert result.exit_code == 0, result.output
    assert "fast is better by" in result.output
    assert "router" in result.output
    found = numbers(path)
    measured = {engine: {quantity for _, name, quantity in found if name == engine} for engine in ("fast", "rtl")}
    assert measured["rtl"] >= {BUSY, IDLE, WRITE}
    assert measured["fast"] >= measured["rtl"] | {SNAPSHOT, "processing element, ns a cycle"}
    assert SNAPSHOT not in measured["rtl"]


def test_speedups_compare_with_the_best_of_the_others() -> None:
    speeds = {"fast": 12.0, "rtl": 3.0, "rtl -O3": 4.0}
    seconds = {"fast": 2.0, "rtl": 10.0, "rtl -O3": 20.0}
    figures = [Figure("nano", name, BUSY, value) for name, value in speeds.items()]
    figures += [Figure("nano", name, LIBRARY, value) for name, value in seconds.items()]
    figures += [Figure("nano", "fast", SNAPSHOT, 1.0)]
    assert list(speedups(figures)) == [("nano", BUSY, 3.0), ("nano", LIBRARY, 5.0)]


def test_engines_that_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Contender("slow", "fast")

    def opened(url: str) -> object:
        opened.count += 1  # type: ignore[attr-defined]
        return open_transport(f"{url}?memory=1M&latency={20 + 20 * opened.count}")  # type: ignore[attr-defined]

    opened.count = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(speed, "contenders", lambda flags: [Contender("fast", "fast"), slow])
    monkeypatch.setattr(speed, "open_transport", opened)
    with pytest.raises(WrongResultError, match="different numbers of cycles"):
        compare("nano", (8, 8, 8), 1, build=False)


def test_a_start_that_fails() -> None:
    with pytest.raises(EngineError, match="memory=lots is no size"):
        start_times("fast:nano?memory=lots", Contender("fast", "fast"))


def test_the_environment_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXXFLAGS", "-O1")
    monkeypatch.delenv("SLEY_CACHE", raising=False)
    with environment((("CXXFLAGS", "-O3"), ("SLEY_CACHE", "somewhere"))):
        assert (os.environ["CXXFLAGS"], os.environ["SLEY_CACHE"]) == ("-O3", "somewhere")
    assert os.environ["CXXFLAGS"] == "-O1"
    assert "SLEY_CACHE" not in os.environ


@pytest.mark.campaign
def test_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "contenders", lambda flags: [Contender("fast", "fast")])
    said: list[str] = []
    found = {figure.quantity: figure.value for figure in compare("nano", (8, 8, 8), 1, say=said.append)}
    assert said == ["nano: building fast", "nano: running"]
    assert np.all([found[quantity] > 0 for quantity in (TEXT, LIBRARY, START, BUSY)])
    assert found[BUILD] == found[TEXT] + found[LIBRARY]
