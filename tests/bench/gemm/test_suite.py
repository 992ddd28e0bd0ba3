"""``sley bench suite`` on small chips."""

import csv
import math
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sley.abi.config import PRESETS
from sley.abi.types import ElementType
from sley.bench.gemm import suite
from sley.bench.gemm.measure import WrongResultError, bench_problem, measure_gemm
from sley.bench.gemm.scalesim import Array
from sley.bench.gemm.shapes import Layer
from sley.bench.gemm.suite import arrays_to_compare, geometric_mean, size_to_run
from sley.runtime import Device
from sley.runtime.cli import app
from sley.runtime.kernels.gemm.limits import device_bytes
from sley.runtime.kernels.gemm.problem import Problem
from sley.sim.engines.options import default_engine

SHAPES = """\
family,layer,M,N,K,count
first,a,8,8,8,1
first,b,40,6,10,3
second,same,8,8,8,2
second,c,1,9,7,1
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", "suite", *arguments])


@pytest.fixture
def shapes(tmp_path: Path) -> str:
    path = tmp_path / "shapes.csv"
    path.write_text(SHAPES)
    return str(path)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The sizes that are measured."""
    sizes: list[tuple[int, ...]] = []

    def counting(device: Device, problem: Problem, **options: bool) -> object:
        sizes.append((problem.m, problem.n, problem.k))
        return measure_gemm(device, problem, **options)

    monkeypatch.setattr(suite, "measure_gemm", counting)
    return sizes


@pytest.mark.skipif(default_engine() != "fast", reason="needs a compiler")
def test_numbers(shapes: str, scalesim_python: Path, tmp_path: Path, measured: list[tuple[int, ...]]) -> None:
    output, picture = tmp_path / "numbers.csv", tmp_path / "roofline.png"
    arguments = ["-e", "fast:nano?memory=1M", "--shapes", shapes, "--scalesim-python", str(scalesim_python)]
    arguments += ["--max-macs", "1000", "--scalesim-cycles", "100", "--csv", str(output), "--roofline", str(picture)]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert measured == [(8, 8, 8), (16, 6, 10), (1, 9, 7)]
    assert "SCALE-Sim's formula, not run" in result.output
    with output.open(newline="") as file:
        rows = {row["layer"]: row for row in csv.DictReader(file)}
    assert [row["family"] for row in rows.values()] == ["first", "first", "second", "second"]
    assert {name: row["rows_run"] for name, row in rows.items()} == {"a": "8", "b": "16", "same": "8", "c": "1"}
    assert {name: (row["M"], row["count"]) for name, row in rows.items()}["b"] == ("40", "3")
    assert rows["a"]["cycles"] == rows["same"]["cycles"]
    for row in rows.values():
        cycles = int(row["cycles"])
        bounds = {name: int(row[f"bound_{name}"]) for name in ("compute", "read", "write")}
        m, n, k = int(row["rows_run"]), int(row["N"]), int(row["K"])
        assert bounds == {
            "compute": math.ceil(m * n * k / 16),
            "read": math.ceil((m * k + k * n) / 4),
            "write": m * n,
        }
        assert cycles > int(row["bound"]) == max(bounds.values())
        assert float(row["share_of_peak"]) == pytest.approx(m * n * k / 16 / cycles, abs=1e-6)
        assert float(row["share_of_beats"]) == pytest.approx(max(bounds["read"], bounds["write"]) / cycles, abs=1e-6)
        peer = int(row["scalesim_4x4"])
        assert peer == math.ceil(k / 4) * math.ceil(n / 4) * (m + 10)
        assert row["scalesim_4x4_source"] == ("run" if peer <= 100 else "formula")
        assert float(row["scalesim_4x4_ratio"]) == pytest.approx(peer / cycles, abs=1e-6)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("cycles_for_all")
def test_without_scalesim(shapes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("ran a process"))
    output = tmp_path / "numbers.csv"
    engine = "model:edge?memory=1M&values=numpy"
    result = run("-e", engine, "--shapes", shapes, "--no-scalesim", "--result", "int8", "--csv", str(output))
    assert result.exit_code == 0, result.output
    assert "SCALE-Sim" not in result.output
    assert "scalesim" not in output.read_text()


@pytest.mark.usefixtures("cycles_for_all")
def test_what_does_not_fit_is_left_out(shapes: str, tmp_path: Path, measured: list[tuple[int, ...]]) -> None:
    Path(shapes).write_text(SHAPES + "second,huge,1000,1000,1,1\n")
    result = run("-e", "model:quad?memory=1M", "--shapes", shapes, "-f", "second")
    assert result.exit_code == 0, result.output
    assert f"left out: second huge needs {device_bytes(bench_problem((1000, 1000, 1))):,} bytes" in result.stderr
    assert "quad has 4: not compared" in result.stderr
    assert measured == [(8, 8, 8), (1, 9, 7)]
    Path(shapes).write_text("family,layer,M,N,K,count\nsecond,huge,1000,1000,1,1\n")
    result = run("-e", "model:quad?memory=1M", "--shapes", shapes)
    assert (result.exit_code, "no shape is left to run" in result.output) == (2, True)


@pytest.mark.usefixtures("cycles_for_all")
def test_errors(shapes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("-f", "vgg")
    assert (result.exit_code, result.stderr[:24]) == (1, "error: no family 'vgg'; ")
    result = run("--shapes", str(tmp_path / "nothing.csv"))
    assert (result.exit_code, "No such file" in result.stderr) == (1, True)
    result = run("-e", "model:nano?memory=1M", "--shapes", shapes, "--scalesim-python", str(tmp_path / "python"))
    assert (result.exit_code, "is no Python" in result.stderr) == (1, True)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\0")
    result = run("-e", "model:nano?memory=1M", "--shapes", str(binary))
    assert (result.exit_code, f"{binary} is no text in UTF-8" in result.stderr) == (1, True)
    for option in ("--csv", "--roofline"):
        result = run(option, str(tmp_path / "none" / "numbers.png"))
        assert (result.exit_code, f"there is no folder {tmp_path / 'none'}" in result.stderr) == (1, True)
    result = run("--roofline", str(tmp_path / "picture.doc"))
    assert (result.exit_code, "*.png" in result.output) == (2, True)
    monkeypatch.setitem(sys.modules, "sley.bench.gemm.roofline", None)
    result = run("--roofline", str(tmp_path / "picture.png"))
    assert (result.exit_code, "pip install -e '.[bench]'" in result.output) == (2, True)


@pytest.mark.usefixtures("cycles_for_all")
def test_a_wrong_result_ends_the_suite(shapes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object, **__: object) -> object:
        raise WrongResultError("gemm 1 x 1 x 1 differs from numpy in 1 values")

    monkeypatch.setattr(suite, "measure_gemm", wrong)
    result = run("-e", "model:nano?memory=1M", "--shapes", shapes, "--no-scalesim")
    assert result.exit_code == 1
    assert result.stderr.endswith("error: gemm 1 x 1 x 1 differs from numpy in 1 values\n")


def test_rows_to_run() -> None:
    def rows(m: int, n: int, k: int, max_macs: int) -> int:
        size = size_to_run(Layer("", "", (m, n, k), 1), max_macs, PRESETS["base"])
        assert size[1:] == (n, k)
        return size[0]

    assert rows(100, 10, 10, 10_000) == 100
    assert rows(100, 10, 10, 9_999) == 96
    assert rows(100, 10, 10, 1_600) == 16
    assert rows(100, 10, 10, 1_599) == 15
    assert rows(100, 10, 10, 99) == 1


def test_arrays() -> None:
    assert arrays_to_compare(PRESETS["base"], ElementType.BF16) == [Array(16, 16)]
    found = {name: arrays_to_compare(config, ElementType.INT8) for name, config in PRESETS.items()}
    assert found == {
        "nano": [Array(4, 4)],
        "edge": [Array(8, 8), Array(16, 8)],
        "base": [Array(16, 16), Array(32, 16)],
        "quad": [],
    }


def test_geometric_mean() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


@pytest.mark.parametrize("name", PRESETS)
def test_small_memory_never_sets_the_bound(name: str) -> None:
    """The page on benchmarks says so: 2 MNK / sqrt(S) bytes take less time than MNK products, at any M, N and K."""
    config = PRESETS[name]
    elements = config.cores * (config.scratchpad_rows * config.row_bytes + config.accumulator_rows * config.array)
    assert 2 / math.sqrt(elements) / config.bus_bytes * config.peak_macs < 1 / 5
