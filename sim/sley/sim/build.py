"""From Verilog to a shared library: Verilator, then the C++ compiler on as many files at a time as there are cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sley.sim.cache import cached, digest
from sley.sim.progress import progress
from sley.sim.toolchain import BuildError, Toolchain, run_tool

OPTIMISE, OPTIMISE_ONCE, OPTIMISE_SUPPORT = "-O2", "-O0", "-O1"  # every cycle; set-up code; Verilator's run time
VERILATE = (
    *("--cc", "--top-module", "sley", "--prefix", "Vsley", "-O3", "--no-timing", "--no-assert"),
    *("-Wno-fatal", "-Wno-lint", "--output-split", "10000", "--output-split-cfuncs", "2500"),
    *("--timescale", "1ns/1ns"),
)
TRACE_LIBRARIES = {None: (), "vcd": (), "fst": ("-llz4", "-lz")}


class LibraryBuild:
    """One build: what its result depends on, as ``name``, and the steps."""

    def __init__(self, verilog: str, harness: Path, defines: dict[str, int], trace: str | None) -> None:
        self._tools = Toolchain.find()
        self._verilog, self._harness, self._trace = verilog, harness, trace
        self._defines = [f"-D{name}={value}" for name, value in defines.items()]
        own_headers = (harness.parent, harness.parent.parent / "memory")
        model = {"VERILATOR": 1, "VM_COVERAGE": 0, "VM_SC": 0, "VM_TIMING": 0, "VM_TRACE_SAIF": 0}
        model |= {"VM_TRACE": trace is not None, "VM_TRACE_VCD": trace == "vcd", "VM_TRACE_FST": trace == "fst"}
        self._flags = (*self._tools.flags, *(f"-D{name}={int(value)}" for name, value in model.items()))
        self._includes = [flag for folder in (*own_headers, *self._tools.includes) for flag in ("-I", str(folder))]
        levels = (OPTIMISE, OPTIMISE_ONCE, OPTIMISE_SUPPORT)
        self._key = (self._tools.compiler, *self._tools.versions, *self._flags, *levels)
        headers = [path.read_bytes() for folder in own_headers for path in sorted(folder.glob("*.h"))]
        self.name = digest(*self._key, *VERILATE, *self._defines, repr(trace), verilog, harness.read_bytes(), *headers)

    def __call__(self, output: Path, scratch: Path) -> None:
        with progress("Compiling the rtl engine (once for this design)") as show:
            show("Verilator")
            (scratch / "sley.v").write_text(self._verilog)
            trace = () if self._trace is None else (f"--trace-{self._trace}",)
            self._tools.verilator(*VERILATE, *trace, "-Mdir", scratch, "sley.v", folder=scratch)

            support = ["verilated.cpp", "verilated_threads.cpp"]
            if self._trace:
                support.append(f"verilated_{self._trace}_c.cpp")
            generated = [self._harness, *sorted(scratch.glob("*.cpp"), key=lambda path: -path.stat().st_size)]
            jobs = [*map(self._support_job, support), *(self._job(source, scratch) for source in generated)]
            objects: list[Path] = []
            with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
                try:
                    for finished in pool.map(lambda job: job(), jobs):
                        objects.append(finished)
                        show(f"C++, {len(objects)} of {len(jobs)} files")
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
            libraries = ("-pthread", *TRACE_LIBRARIES[self._trace])
            run_tool([self._tools.compiler, "-shared", *objects, "-o", output, *libraries], scratch)

    def _compile(self, source: Path, folder: Path, output: Path, optimise: str) -> Path:
        flags = (optimise, *self._flags, *self._defines, "-I", str(folder), *self._includes)
        run_tool([self._tools.compiler, "-c", *flags, source, "-o", output], folder)
        return output

    def _job(self, source: Path, folder: Path) -> Callable[[], Path]:
        optimise = OPTIMISE_ONCE if source.stem.endswith("__Slow") else OPTIMISE
        return lambda: self._compile(source, folder, folder / f"{source.stem}.o", optimise)

    def _support_job(self, name: str) -> Callable[[], Path]:
        """Verilator's own run time is the same for all designs and compiled once."""
        source = self._tools.includes[0] / name
        key = digest(*self._key, name)

        def build(output: Path, scratch: Path) -> None:
            self._compile(source, scratch, output, OPTIMISE_SUPPORT)

        return lambda: cached("support", f"{key}.o", build)


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
