"""From Verilog to a shared library: Verilator, then the C++ compiler on as many files at a time as there are cores."""

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sley.sim.build.cache import cached, digest
from sley.sim.build.progress import progress
from sley.sim.build.sources import Sources
from sley.sim.build.toolchain import Toolchain, run_tool
from sley.sim.errors import BuildError

OPTIMISE, OPTIMISE_ONCE = "-O1", "-O0"  # what runs every cycle, and set-up code; -O2 is no faster, and slower to make
VERILATE = (
    *("--cc", "--top-module", "sley_engine", "--prefix", "Vsley", "-O3", "--no-timing", "--no-assert"),
    *("-Wno-fatal", "-Wno-lint", "--output-split", "30000", "--output-split-cfuncs", "2500"),
    *("--timescale", "1ns/1ns"),
)
TRACE_LIBRARIES = {None: (), "vcd": (), "fst": ("-llz4", "-lz")}


def without_reset(verilog: str) -> str:
    """A top module around ``sley`` that never resets it: reset multiplexers on all registers would halve the speed."""
    module = verilog[verilog.index("\nmodule sley(") :].partition("endmodule")[0]
    ports = re.findall(r"^  (input|output) (\[\d+:0\] )?(\w+);", module, re.MULTILINE)
    outer = ", ".join(f"{direction} {width}{name}" for direction, width, name in ports if name != "rst")
    inner = ", ".join(".{}({})".format(name, "1'b0" if name == "rst" else name) for _, _, name in ports)
    return f"module sley_engine({outer});\n  sley chip({inner});\nendmodule\n"


def compile_once(verilog: str) -> str:
    """Verilator configuration: several cores share their code. That halves the code to compile for four of them."""
    repeated = len(re.findall(r"^  sley_core ", verilog, re.MULTILINE)) > 1
    return "`verilator_config\n" + ('no_inline -module "sley_core"\n' if repeated else "")


class LibraryBuild:
    """One build: what its result depends on, as ``name``, and the steps."""

    def __init__(self, verilog: str, harness: Path, defines: dict[str, int], trace: str | None) -> None:
        self._tools = Toolchain.find()
        self._verilog, self._harness, self._trace = verilog, harness, trace
        self._wrapper = without_reset(verilog)
        self._settings = compile_once(verilog)
        self._defines = [f"-D{name}={value}" for name, value in defines.items()]
        own_headers = (harness.parent, harness.parent.parent / "memory")
        model = {"VERILATOR": 1, "VM_COVERAGE": 0, "VM_SC": 0, "VM_TIMING": 0, "VM_TRACE_SAIF": 0}
        model |= {"VM_TRACE": trace is not None, "VM_TRACE_VCD": trace == "vcd", "VM_TRACE_FST": trace == "fst"}
        self._flags = (*self._tools.flags, *(f"-D{name}={int(value)}" for name, value in model.items()))
        self._includes = [flag for folder in (*own_headers, *self._tools.includes) for flag in ("-I", str(folder))]
        levels = (OPTIMISE, OPTIMISE_ONCE)
        self._key = (self._tools.compiler, *self._tools.versions, *self._flags, *levels)
        headers = [path for folder in own_headers for path in sorted(folder.glob("*.h"))]
        self._sources = Sources(lambda: (harness, *headers))
        texts = (verilog, self._wrapper, self._settings, self._sources.digest)
        self.name = digest(*self._key, *VERILATE, *self._defines, repr(trace), *texts)

    def __call__(self, output: Path, scratch: Path) -> None:
        with progress("Compiling the rtl engine (once for this design)") as show:
            with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
                try:
                    objects = self._objects(scratch, pool, show)
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
            libraries = ("-pthread", *TRACE_LIBRARIES[self._trace])
            run_tool([self._tools.compiler, "-shared", *objects, "-o", output, *libraries], scratch)
        self._sources.check()

    def _objects(self, scratch: Path, pool: ThreadPoolExecutor, show: Callable[[str], None]) -> list[Path]:
        """Everything compiled; Verilator runs beside the compilation of its own run time."""
        support = ["verilated.cpp", "verilated_threads.cpp"]
        if self._trace:
            support.append(f"verilated_{self._trace}_c.cpp")
        jobs = [pool.submit(self._compile_support, name) for name in support]
        show("Verilator")
        (scratch / "sley.v").write_text(self._verilog + self._wrapper)
        (scratch / "sley.vlt").write_text(self._settings)
        trace = () if self._trace is None else (f"--trace-{self._trace}",)
        self._tools.verilator(*VERILATE, *trace, "-Mdir", scratch, "sley.vlt", "sley.v", folder=scratch)
        sources = sorted(scratch.glob("*.cpp"), key=lambda path: -path.stat().st_size)
        jobs += [pool.submit(self._compile_generated, source, scratch) for source in (*sources, self._harness)]
        objects = []
        for job in jobs:
            objects.append(job.result())
            show(f"C++, {len(objects)} of {len(jobs)} files")
        return objects

    def _compile_generated(self, source: Path, folder: Path) -> Path:
        optimise = OPTIMISE_ONCE if source.stem.endswith("__Slow") else OPTIMISE
        output = folder / f"{source.stem}.o"
        self._compile(source, folder, output, optimise)
        return output

    def _compile_support(self, name: str) -> Path:
        """Verilator's own run time is the same for all designs and compiled once."""
        source = self._tools.includes[0] / name

        def build(output: Path, scratch: Path) -> None:
            self._compile(source, scratch, output, OPTIMISE)

        return cached("support", f"{digest(*self._key, name)}.o", build)

    def _compile(self, source: Path, folder: Path, output: Path, optimise: str) -> None:
        flags = (optimise, *self._flags, *self._defines, "-I", str(folder), *self._includes)
        run_tool([self._tools.compiler, "-c", *flags, source, "-o", output], folder)


def build_library(verilog: str, harness: Path, defines: dict[str, int], trace: str | None) -> Path:
    """The shared library of a design: Verilated model and ``harness``. ``trace``: None, ``vcd`` or ``fst``."""
    build = LibraryBuild(verilog, harness, defines, trace)
    try:
        return cached("rtl", f"{build.name}.so", build)
    except BuildError as error:
        if trace == "fst" and any(word in str(error) for word in ("lz4", "zlib", "-lz")):
            raise BuildError(
                "FST waveforms need the headers of lz4 and zlib (Debian, Ubuntu: apt install liblz4-dev zlib1g-dev); "
                "or write a VCD: trace=NAME.vcd"
            ) from error
        raise
