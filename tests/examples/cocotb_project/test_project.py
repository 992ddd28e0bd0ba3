"""``sley cocotb new``: the project is complete, elaborates without a warning, and its tests pass as they are."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sley.abi.config import preset
from sley.examples.cocotb_project.system_text import system_text
from sley.runtime.cli import app
from sley.sim.cocotb.runner import installed_simulators
from sley.sim.cocotb.waveform import labelled_signals

needs_icarus = pytest.mark.skipif(not shutil.which("iverilog"), reason="no Icarus Verilog (apt install iverilog)")


def made(folder: Path, config: str = "nano") -> Path:
    result = CliRunner().invoke(app, ["cocotb", "new", str(folder / "mine"), "--config", config])
    assert result.exit_code == 0, result.output
    return folder / "mine"


def recorded(waveform: Path) -> set[str]:
    """Paths of all vectors of a VCD, with their ranges. (pyvcd refuses the name that Verilator gives to the root.)"""
    paths: set[str] = set()
    scopes: list[str] = []
    with waveform.open() as file:
        for words in map(str.split, file):
            if words[:1] == ["$scope"]:
                scopes.append(words[2])
            elif words[:1] == ["$upscope"]:
                scopes.pop()
            elif words[:1] == ["$var"]:
                paths.add(".".join([*scopes, "".join(words[4:-1])]))
            elif words[:1] == ["$enddefinitions"]:
                break
    return paths


@pytest.mark.parametrize(
    "simulator",
    [pytest.param("icarus", marks=pytest.mark.slow), pytest.param("verilator", marks=pytest.mark.campaign)],
)
def test_its_tests_pass(simulator: str, tmp_path: Path) -> None:
    """And the view of the waveform has names of signals that are in it."""
    if simulator not in installed_simulators():
        pytest.skip(f"no {simulator}")
    project = made(tmp_path)
    command = [sys.executable, "run.py", simulator, "--waves"]
    result = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=800, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "PASS=5 FAIL=0" in result.stdout
    build = project / "sim_build" / simulator
    assert "scaler.beats_by_factor" in (build / "coverage.yml").read_text()
    (view,) = build.glob("*.gtkw")
    shown = {line for line in view.read_text().splitlines() if line.startswith("system.")}
    assert {"system.block.state[2:0]", "system.chip.core0.sequencer.execute.alu.op[7:0]"} <= shown
    if simulator == "verilator":
        assert shown <= recorded(build / "dump.vcd")
    else:
        assert (build / "system.fst").stat().st_size > 10_000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("project"))


@needs_icarus
def test_it_elaborates(project: Path) -> None:
    chip = [line for line in (project / "sley" / "sley.f").read_text().splitlines() if not line.startswith("//")]
    sources = [*(f"sley/{line}" for line in chip if line), *_found(project, "rtl"), *_found(project, "interconnect")]
    command = ["iverilog", "-g2005", "-Wall", "-s", "system", "-o", "/dev/null", *sources]
    result = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert [line for line in result.stderr.splitlines() if "timescale" not in line] == []


def test_it_is_complete(project: Path) -> None:
    """The page names what is there, and waveforms will have names."""
    readme = (project / "README.md").read_text()
    for path in ("rtl/scaler.v", "rtl/axil_decoder.v", "rtl/system.v", "test_system.py", "run.py"):
        assert f"`{path}`" in readme
        assert (project / path).exists()
    for name in ("run.py", "test_system.py"):
        compile((project / name).read_text(), name, "exec")
    assert not [*project.rglob("*.txt")]
    paths = {signal.path for signal in labelled_signals([*project.rglob("*.v")], "system")}
    assert paths >= {
        "system.block.state",
        "system.chip.core0.sequencer.execute.state",
        "system.chip.core0.sequencer.execute.alu.op",
        "system.chip.command.queue0.state",
    }


def _found(project: Path, folder: str) -> list[str]:
    return sorted(str(path.relative_to(project)) for path in (project / folder).glob("*.v"))


@pytest.mark.parametrize("name", ["nano", "base"])
def test_the_system_has_the_bus_of_its_chip(name: str) -> None:
    config = preset(name)
    text = system_text(config)
    assert f"output wire [{8 * config.bus_bytes - 1}:0] m_axi_wdata" in text
    assert f"scaler #(.ADDR_BITS({config.addr_bits}), .DATA_BITS({8 * config.bus_bytes})) block (" in text
    assert "input wire [16:0] s_axil_awaddr" in text
    assert ".s_axil_rdata(rdata[63:32])" in text
    assert ".s_axil_awvalid(awvalid[1])" in text


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(app, ["cocotb", "new", str(tmp_path)])
    assert result.exit_code == 1
    assert "is not empty; an export needs a folder of its own" in result.output
    wrong = CliRunner().invoke(app, ["cocotb", "new", str(tmp_path / "new"), "--config", "pico"])
    assert wrong.exit_code == 2
    assert "no preset 'pico'" in wrong.output
