"""Writes the Verilog of a chip and runs a cocotb bench on it.

From a shell: ``python bench_runner.py chip_bench nano``.
"""

import sys
from pathlib import Path

from sley.abi.config import preset
from sley.hw.verilog import chip_verilog
from sley.sim.cocotb.runner import run_bench


def run_chip_bench(verilog: str, module: str, build: Path) -> None:
    """Runs all cocotb tests of the Python ``module``; ``build`` is the folder for everything made."""
    build.mkdir(parents=True, exist_ok=True)
    source = build / "sley.v"
    source.write_text(verilog)
    run_bench([source], module, build, "verilator")


if __name__ == "__main__":
    bench, config = sys.argv[1], preset(sys.argv[2] if len(sys.argv) > 2 else "nano")
    run_chip_bench(chip_verilog(config), bench, Path("sim_build") / config.name)
