# amaranth: UnusedElaboratable=no
"""The exported chip in simulators: its bench runs as it is, and everything happens in the same cycle as on ``fast``."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from session import run_session

from sley.abi.config import preset
from sley.hw.ip.export import ip_files, write_export
from sley.sim.cocotb.runner import BenchError, installed_simulators, run_bench
from sley.sim.engines.design_text import cached_rtlil, cached_verilog
from sley.sim.engines.fast import FastTransport
from sley.sim.engines.options import EngineOptions, default_engine

SMALL = [[1, 1, 1], [5, 3, 7]]
LARGER = [*SMALL, [13, 9, 11], [20, 17, 30]]


def needs(simulator: str) -> pytest.MarkDecorator:
    how = {"icarus": "Debian, Ubuntu: apt install iverilog", "verilator": "C++ compiler and make"}[simulator]
    return pytest.mark.skipif(simulator not in installed_simulators(), reason=f"no {simulator} ({how})")


@pytest.fixture(scope="module")
def nano(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export("nano", tmp_path_factory.mktemp("nano"))


def export(name: str, folder: Path) -> Path:
    config = preset(name)
    write_export(ip_files(config, cached_verilog(config)), folder / "ip")
    return folder / "ip"


def run_skeleton(folder: Path, scratch: Path, simulator: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "cocotb" / "run.py"), simulator]
    return subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "simulator",
    [
        pytest.param("icarus", marks=needs("icarus")),
        pytest.param("verilator", marks=[needs("verilator"), pytest.mark.slow]),
    ],
)
def test_skeleton_runs_as_it_is(nano: Path, tmp_path: Path, simulator: str) -> None:
    result = run_skeleton(nano, tmp_path, simulator)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "CHIP.CAP_ARRAY.array = 4" in result.stdout
    assert "fence 7 written in cycle" in result.stdout


@pytest.mark.slow
@needs("icarus")
def test_skeleton_finds_another_chip(nano: Path, tmp_path: Path) -> None:
    """A chip whose capability registers tell something else."""
    bank = nano / "rtl" / "sley_bank.v"
    text = bank.read_text()
    scratchpad = f"32'd{preset('nano').scratchpad_banks << 16 | preset('nano').scratchpad_rows}"
    assert scratchpad in text
    bank.write_text(text.replace(scratchpad, "32'd1"))
    try:
        result = run_skeleton(nano, tmp_path, "icarus")
    finally:
        bank.write_text(text)
    assert result.returncode == 1
    assert "error: 1 of 2 cocotb tests of test_chip failed" in result.stderr


def test_missing_simulator_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="simulator 'modelsim' cannot run here"):
        run_bench([], "test_chip", tmp_path, "modelsim")


@pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
@pytest.mark.parametrize(
    ("simulator", "name", "shapes"),
    [
        pytest.param("icarus", "nano", SMALL, marks=[needs("icarus"), pytest.mark.slow]),
        # Exported, it elaborates in Icarus and keeps its cycles in Verilator: tests/hw/ip.
        pytest.param("icarus", "edge", SMALL, marks=[needs("icarus"), pytest.mark.campaign]),
        pytest.param("icarus", "nano", LARGER, marks=[needs("icarus"), pytest.mark.campaign]),
        # Verilator: tests/hw/ip/test_same_behaviour.py, in a fraction of the time.
        pytest.param("verilator", "nano", LARGER, marks=[needs("verilator"), pytest.mark.campaign]),
    ],
)
def test_every_cycle_is_that_of_fast(simulator: str, name: str, shapes: list[list[int]], tmp_path: Path) -> None:
    """Products through the driver: the cycle in which each was done, written by the chip and seen by the host."""
    config = preset(name)
    sources = sorted((export(name, tmp_path) / "rtl").glob("*.v"))
    request = {"shapes": shapes, "result": str(tmp_path / "result.json")}
    environment = {"SLEY_SESSION": json.dumps(request)}
    run_bench(sources, "cycles_bench", tmp_path / "build", simulator, environment=environment)
    fast = FastTransport(cached_rtlil(config), config.bus_bytes, EngineOptions(1 << 20))
    with ThreadPoolExecutor(1) as pool:  # as in the simulator: a driver among threads waits in shorter slices
        expected = pool.submit(run_session, fast, shapes).result()
    assert len({*expected["times"]}) == 2 * len(shapes)
    assert json.loads((tmp_path / "result.json").read_text()) == expected
