"""The cocotb benches as tests: the generated Verilog of nano under Verilator.

The command of the guide runs with its page.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from bench_runner import run_chip_bench

from sley.abi.config import preset
from sley.sim.build.toolchain import find_compiler, find_verilator
from sley.sim.cocotb.runner import installed_simulators
from sley.sim.engines.design_text import cached_verilog

needs_verilator = pytest.mark.skipif(not (find_compiler() and find_verilator()), reason="no C++ compiler or Verilator")


@pytest.mark.campaign  # a slow test runs the same bench by the command of the guide
@needs_verilator
def test_chip(tmp_path: Path) -> None:
    run_chip_bench(cached_verilog(preset("nano")), "chip_bench", tmp_path)


BENCH = """import cocotb
from cocotb.triggers import Timer


@cocotb.test(timeout_time=100, timeout_unit="us")
async def small(dut):
    dut.a.value = 5
    await Timer(1, "ns")
    assert int(dut.o.value) == 10
"""
RUN = """import sys
from pathlib import Path
from sley.sim.cocotb.runner import run_bench
run_bench([Path("double.v")], "small_bench", Path("sim_build") / "double", sys.argv[1], top="double")
"""


@pytest.mark.parametrize("simulator", ["icarus", pytest.param("verilator", marks=pytest.mark.slow)])
def test_relative_paths(simulator: str, tmp_path: Path) -> None:
    """A bench of one's own in a folder of one's own, from a plain shell."""
    if simulator not in installed_simulators():
        pytest.skip(f"no {simulator}")
    (tmp_path / "double.v").write_text("module double(input [7:0] a, output [7:0] o); assign o = a << 1; endmodule\n")
    (tmp_path / "small_bench.py").write_text(BENCH)
    subprocess.run([sys.executable, "-c", RUN, simulator], cwd=tmp_path, check=True, timeout=600)
    assert (tmp_path / "sim_build" / "double" / "results.xml").exists()
