"""Tilings that were measured: kept, found again, refused when they are broken."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sley.abi.config import PRESETS
from sley.abi.types import ElementType
from sley.runtime.cli import app
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm.plan import candidates, plan
from sley.runtime.kernels.gemm.problem import Problem, Strides
from sley.runtime.kernels.gemm.tuned import VERSION, TuningError, keep, tuned, tuned_file
from sley.sim.engines.options import default_engine

BASE = PRESETS["base"]
PROBLEMS = [
    Problem(64, 64, 64),
    Problem(64, 64, 64, strides=Strides(80, 64, 99, 0, 0, 0)),
    Problem(1, 300, 70, ElementType.BF16, trans_b=True, epilogue=Epilogue(ElementType.BF16, bias=True, scale=True)),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sley.runtime.kernels.gemm.tuned.cache_folder", lambda: tmp_path)
    return tmp_path


def test_a_plan_that_is_kept_is_taken() -> None:
    for problem in PROBLEMS:
        planned, *others = candidates(BASE, problem, 3)
        assert plan(BASE, problem) == planned
        keep(BASE, problem, others[-1])
        assert plan(BASE, problem) == others[-1]
    assert set(tuned(BASE)) == set(PROBLEMS)


def test_files_of_another_version_are_not_read() -> None:
    keep(BASE, PROBLEMS[0], candidates(BASE, PROBLEMS[0], 2)[1])
    content = json.loads(tuned_file(BASE).read_text())
    tuned_file(BASE).write_text(json.dumps({**content, "version": 0}))
    keep(PRESETS["edge"], PROBLEMS[0], candidates(PRESETS["edge"], PROBLEMS[0], 1)[0])  # forgets what was read
    assert not tuned(BASE)


@pytest.mark.parametrize(
    "damage", ["{", "[]", f'{{"version": {VERSION}}}', f'{{"version": {VERSION}, "tilings": [{{}}]}}']
)
def test_broken_files(damage: str) -> None:
    tuned_file(BASE).parent.mkdir()
    tuned_file(BASE).write_text(damage)
    with pytest.raises(TuningError, match=r"remove it and tune again"):
        plan(BASE, PROBLEMS[0])


def test_tilings_that_do_not_fit() -> None:
    keep(BASE, PROBLEMS[0], candidates(BASE, PROBLEMS[0], 1)[0])
    text = tuned_file(BASE).read_text()
    tuned_file(BASE).write_text(text.replace('"slots": 2', '"slots": 200'))
    keep(PRESETS["edge"], PROBLEMS[0], candidates(PRESETS["edge"], PROBLEMS[0], 1)[0])
    with pytest.raises(TuningError, match="does not fit base"):
        plan(BASE, PROBLEMS[0])


@pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
def test_command() -> None:
    result = CliRunner().invoke(app, ["tune", "9", "8", "12", "-e", "fast:nano?memory=1M", "-c", "3"])
    assert result.exit_code == 0, result.output
    assert (result.output.count("planned"), result.output.count("kept")) == (1, 2)
    assert set(tuned(PRESETS["nano"])) == {Problem(9, 8, 12)}


def test_a_cache_that_is_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "file"
    file.write_text("mine")
    monkeypatch.setattr("sley.runtime.kernels.gemm.tuned.cache_folder", lambda: file)
    with pytest.raises(TuningError, match=rf"{file}, where nothing can be written .*set SLEY_CACHE to a folder"):
        keep(BASE, PROBLEMS[0], candidates(BASE, PROBLEMS[0], 1)[0])
