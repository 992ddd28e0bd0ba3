"""Pass 7, compile: from RTLIL text to a shared library that holds the design, its host code and its manifest.

The C of a design is kept in the cache and compiled twice: cheaply at first, then well, by a process in the background.
"""

import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sley.sim.build.cache import cache_folder, cached, digest, known
from sley.sim.build.new_process import in_background, in_new_process
from sley.sim.build.progress import Step, progress
from sley.sim.build.sources import Sources
from sley.sim.build.toolchain import CCompiler, cpu_features
from sley.sim.errors import FastError
from sley.sim.fast.emit.emit import emit
from sley.sim.fast.emit.manifest import make_manifest
from sley.sim.fast.optimise.classify import classify
from sley.sim.fast.read.flatten import flatten
from sley.sim.fast.read.netlist import Netlist
from sley.sim.fast.read.rtlil import parse
from sley.sim.fast.run.tier import AUTO, BEST, FIRST, OPTIMISE, chosen
from sley.sim.fast.schedule.schedule import schedule

FOLDER = Path(__file__).parent
HOST = FOLDER / "simulation.c"
LOG = "background.log"
"""What the process in the background says, in the folder of the cache."""
SMALL = 200_000
"""Bytes of C: a smaller design is compiled well at once."""
SECONDS = {"passes": 0.45e-6, FIRST: 2.5e-6, BEST: 5e-6}
"""Of the passes for a byte of RTLIL, and of the compiler for a byte of C."""
STAGES = tuple(FOLDER.parent / stage for stage in ("read", "optimise", "schedule", "emit"))
INCLUDES = (FOLDER.parent / "emit", FOLDER)
"""Folders of what the generated C includes, and a host."""


def netlist_of(rtlil: str, top: str | None = None, ties: Mapping[str, int] | None = None) -> Netlist:
    """The netlist of an RTLIL text; ``top`` is the first module if not named, ``ties`` are inputs that are constant."""
    modules = parse(rtlil)
    if not modules:
        raise FastError("the RTLIL has no module")
    name = top or next(iter(modules))
    if name not in modules:
        raise FastError(f"the RTLIL has no module {name!r}; there are {', '.join(sorted(modules)[:10])}")
    return flatten(modules, name, ties)


def write_design(archive: Path, rtlil: str, top: str | None, ties: Mapping[str, int] | None) -> None:
    """C code of a design and the description of its state, as files in an archive."""
    netlist = netlist_of(rtlil, top, ties)
    code = emit(schedule(classify(netlist)))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as files:
        files.writestr("design.h", code.header)
        for number, text in enumerate(code.sources):
            files.writestr(f"design_{number}.c", text)
        files.writestr("manifest.c", make_manifest(netlist, code).as_c())


def _compiler_sources() -> Iterator[Path]:
    """All that decides how a design is compiled."""
    for stage in STAGES:
        yield from sorted(stage.glob("*.py"))
    yield Path(__file__)
    for folder in INCLUDES:
        yield from sorted(folder.glob("*.h"))


COMPILER = Sources(_compiler_sources)


@dataclass(frozen=True)
class Library:
    """A design in C with its host code, to be compiled.

    ``code``: the archive of ``write_design``. ``host``, ``includes``, ``defines``: the host code, folders of what it
    includes, and flags for it.
    """

    code: Path
    host: Path
    includes: tuple[Path, ...]
    defines: tuple[str, ...]

    def key(self, tier: str, compiler: CCompiler) -> str:
        """Names all that decides what the library is."""
        return digest(
            *compiler.command,
            *(compiler.version, *OPTIMISE[tier], *compiler.flags, *self.defines, cpu_features(), self.code.stem),
            *(self._sources().digest, COMPILER.digest),
        )

    def _sources(self) -> Sources:
        headers = [path for folder in self.includes for path in sorted(folder.glob("*.h"))]
        return Sources(lambda: (self.host, *headers))

    @property
    def size(self) -> int:
        """Bytes of C."""
        with zipfile.ZipFile(self.code) as files:
            return sum(file.file_size for file in files.infolist() if file.filename != "manifest.c")

    def built(self, tier: str) -> bool:
        """Whether the cache has it."""
        return known("fast", f"{self.key(tier, CCompiler.find())}.so")

    def build(self, tier: str) -> Path:
        """The shared library, compiled on first use. Raises ``BuildError`` without a C compiler."""
        compiler, sources = CCompiler.find(), self._sources()
        flags = (*OPTIMISE[tier], *compiler.flags, *self.defines)

        def compile_all(output: Path, scratch: Path) -> None:
            with zipfile.ZipFile(self.code) as files:
                files.extractall(scratch)
            step = Step(f"C, {tier}", self.size, SECONDS[tier])
            with progress("Compiling the fast engine (once for this design)", step) as show:
                shutil.copy(self.host, scratch)
                files_in_order = sorted(scratch.glob("*.c"), key=lambda path: -path.stat().st_size)  # first the longest
                paths = [flag for folder in (scratch, *INCLUDES, *self.includes) for flag in ("-I", str(folder))]
                with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
                    jobs = [
                        pool.submit(
                            compiler.run, "-c", *flags, *paths, source, "-o", source.with_suffix(".o"), folder=scratch
                        )
                        for source in files_in_order
                    ]
                    for done, job in enumerate(jobs):
                        show(f"C, {done} of {len(jobs)} files")
                        job.result()
                objects = sorted(
                    source.with_suffix(".o") for source in files_in_order
                )  # as fragments follow each other
                compiler.run("-shared", *objects, "-o", output, folder=scratch)
            COMPILER.check()
            sources.check()

        return cached("fast", f"{self.key(tier, compiler)}.so", compile_all)


def design_code(rtlil: str, top: str | None, ties: Mapping[str, int] | None) -> Path:
    """The archive of a design's C, written on first use. Raises ``FastError`` for a design that is not supported."""
    key = digest(rtlil, top or "", repr(sorted((ties or {}).items())), COMPILER.digest)

    def write(output: Path, scratch: Path) -> None:
        step = Step("passes", len(rtlil), SECONDS["passes"])
        with progress("Translating the design to C (once for this design)", step):
            in_new_process(write_design, output, rtlil, top, ties)
        COMPILER.check()

    return cached("code", f"{key}.zip", write)


def build_library(
    rtlil: str,
    top: str | None = None,
    host: Path = HOST,
    includes: Sequence[Path] = (),
    defines: Sequence[str] = (),
    ties: Mapping[str, int] | None = None,
    tier: str = AUTO,
) -> Path:
    """The shared library of a design with the host code ``host``, built on first use.

    ``includes`` and ``defines`` are for the host code. ``ties`` are inputs with a constant value; the design is
    simpler, and faster, without them. ``tier``: see ``sley.sim.fast.run.tier``.

    Raises ``FastError`` for a design that the engine does not support, ``BuildError`` without a C compiler.
    """
    wanted = chosen(tier)
    compiler = CCompiler.find()
    library = Library(design_code(rtlil, top, ties), host, tuple(includes), tuple(defines))
    if wanted != AUTO:
        return library.build(wanted)
    if compiler.is_clang or library.size <= SMALL or library.built(BEST):  # clang's tiers take as long
        return library.build(BEST)
    first = library.build(FIRST)
    in_background(cache_folder() / LOG, library.build, BEST)
    return first
