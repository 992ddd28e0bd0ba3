"""The cocotb benches as tests: the generated Verilog of nano under Verilator."""

from pathlib import Path

import pytest
from bench_runner import run_chip_bench

from sley.abi.config import preset
from sley.sim.build.toolchain import find_compiler, find_verilator
from sley.sim.engines.design_text import cached_verilog


@pytest.mark.slow
@pytest.mark.skipif(not (find_compiler() and find_verilator()), reason="no C++ compiler or Verilator")
def test_chip(tmp_path: Path) -> None:
    run_chip_bench(cached_verilog(preset("nano")), "chip_bench", tmp_path)
