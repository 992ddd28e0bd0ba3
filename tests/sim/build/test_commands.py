"""The commands ``sley cache``."""

import os
import re
from datetime import datetime
from pathlib import Path

import pytest
import typer
from filelock import FileLock
from typer.testing import CliRunner, Result

from sley.runtime.cli import _Group
from sley.sim.build.cache import cached
from sley.sim.build.commands import cache, size_text


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))
    monkeypatch.delenv("SLEY_CACHE_LIMIT", raising=False)


def run(*arguments: str) -> Result:
    app = typer.Typer(cls=_Group, pretty_exceptions_enable=False)
    app.add_typer(cache, name="cache")
    return CliRunner().invoke(app, ["cache", *arguments])


def fill(kind: str, sizes: list[int]) -> list[Path]:
    return [
        cached(kind, f"{i}.so", lambda output, scratch, size=size: output.write_bytes(bytes(size)) and None)
        for i, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (3 << 20, "3.0 MiB"),
        (2 << 30, "2.0 GiB"),
        (5 << 40, "5120.0 GiB"),
    ],
)
def test_size(size: int, text: str) -> None:
    assert size_text(size) == text


def test_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in fill("rtl", [1 << 20, 1 << 19]):
        os.utime(path, (1_700_000_000,) * 2)
    fill("verilog", [500])
    result = run("show")
    assert result.exit_code == 0
    rows = [re.split(r" *│ *", line)[1:-1] for line in result.output.splitlines() if line.startswith("│")]
    assert rows[0] == ["rtl", "2", "1.5 MiB", f"{datetime.fromtimestamp(1_700_000_000):%Y-%m-%d %H:%M}"]
    assert rows[1][:3] == ["verilog", "1", "500 B"]
    lines = result.output.splitlines()[-3:]
    assert lines == ["total   1.5 MiB", "limit   2.0 GiB", f"folder  {tmp_path}"]
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "0")
    assert "limit   none" in run("show").output


def test_show_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path / "not" / "there"))
    result = run("show")
    assert result.exit_code == 0
    assert result.output.splitlines()[0] == "total   0 B"
    assert not (tmp_path / "not").exists()


def test_bad_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEY_CACHE_LIMIT", "lots")
    result = run("show")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: SLEY_CACHE_LIMIT=lots is no size")
    assert run("clear").exit_code == run("path").exit_code == 0


def test_clear() -> None:
    first, *_ = fill("rtl", [1000, 2000])
    (second,) = fill("verilog", [24])
    result = run("clear", "verilog")
    assert (result.exit_code, result.output) == (0, "removed 1 entry, freed 24 B\n")
    assert first.exists()
    assert not second.exists()
    assert run("clear").output == "removed 2 entries, freed 2.9 KiB\n"
    assert run("clear").output == "removed 0 entries, freed 0 B\n"
    assert run("clear", "rtl").output == "removed 0 entries, freed 0 B\n"


def test_clear_of_an_unknown_kind() -> None:
    fill("rtl", [1])
    result = run("clear", "rlt")
    assert result.exit_code == 2
    assert "nothing of kind 'rlt', only rtl" in " ".join(result.stderr.replace("│", " ").split())


def test_clear_leaves_what_is_being_built() -> None:
    (path,) = fill("rtl", [1])
    with FileLock(f"{path}.lock"):
        result = run("clear")
    assert result.stdout == "removed 0 entries, freed 0 B\n"
    assert result.stderr == "left rtl/0.so: it is being built\n"
    assert path.exists()


def test_path(tmp_path: Path) -> None:
    assert run("path").output == f"{tmp_path}\n"
