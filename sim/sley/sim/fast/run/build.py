"""Pass 7, compile: from RTLIL text to a shared library that holds the design, its host code and its manifest."""

import gc
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sley.sim.build.cache import cached, digest
from sley.sim.build.new_process import in_new_process
from sley.sim.build.progress import progress
from sley.sim.build.sources import Sources
from sley.sim.build.toolchain import CCompiler, cpu_features
from sley.sim.errors import FastError
from sley.sim.fast.emit.emit import emit
from sley.sim.fast.emit.manifest import make_manifest
from sley.sim.fast.optimise.classify import classify
from sley.sim.fast.read.flatten import flatten
from sley.sim.fast.read.netlist import Netlist
from sley.sim.fast.read.rtlil import parse
from sley.sim.fast.schedule.schedule import schedule

OPTIMISE = ("-O1", "-ftree-vectorize", "-fno-tree-slp-vectorize", "-fno-strict-aliasing", "-fvisibility=hidden", "-w")
FOLDER = Path(__file__).parent
HOST = FOLDER / "simulation.c"
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


def write_design(folder: Path, rtlil: str, top: str | None, ties: Mapping[str, int] | None) -> None:
    """C code of a design and the description of its state, as files.

    For a process of its own: without the search for garbage among a netlist's many objects it takes two thirds of the
    time.
    """
    gc.disable()
    netlist = netlist_of(rtlil, top, ties)
    code = emit(schedule(classify(netlist)))
    (folder / "design.h").write_text(code.header)
    for number, text in enumerate(code.sources):
        (folder / f"design_{number}.c").write_text(text)
    (folder / "manifest.c").write_text(make_manifest(netlist, code).as_c())


def _compiler_sources() -> Iterator[Path]:
    """All that decides how a design is compiled."""
    for stage in STAGES:
        yield from sorted(stage.glob("*.py"))
    yield Path(__file__)
    for folder in INCLUDES:
        yield from sorted(folder.glob("*.h"))


COMPILER = Sources(_compiler_sources)


def build_library(
    rtlil: str,
    top: str | None = None,
    host: Path = HOST,
    includes: Sequence[Path] = (),
    defines: Sequence[str] = (),
    ties: Mapping[str, int] | None = None,
) -> Path:
    """The shared library of a design with the host code ``host``, built on first use.

    ``includes`` and ``defines`` are for the host code. ``ties`` are inputs with a constant value; the design is
    simpler, and faster, without them.

    Raises ``FastError`` for a design that the engine does not support, ``BuildError`` without a C compiler.
    """
    compiler = CCompiler.find()
    flags = (*OPTIMISE, *compiler.flags, *defines)
    headers = [path for folder in includes for path in sorted(folder.glob("*.h"))]
    host_sources = Sources(lambda: (host, *headers))
    key = digest(
        *compiler.command,
        *(compiler.version, *flags, cpu_features(), rtlil, top or "", repr(sorted((ties or {}).items()))),
        *(host_sources.digest, COMPILER.digest),
    )

    def build(output: Path, scratch: Path) -> None:
        with progress("Compiling the fast engine (once for this design)") as show:
            in_new_process(write_design, scratch, rtlil, top, ties)
            shutil.copy(host, scratch)
            files = sorted(scratch.glob("*.c"), key=lambda path: -path.stat().st_size)  # first what takes longest
            paths = [flag for folder in (scratch, *INCLUDES, *includes) for flag in ("-I", str(folder))]
            with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
                jobs = [
                    pool.submit(
                        compiler.run, "-c", *flags, *paths, source, "-o", source.with_suffix(".o"), folder=scratch
                    )
                    for source in files
                ]
                for done, job in enumerate(jobs):
                    show(f"C, {done} of {len(jobs)} files")
                    job.result()
            objects = sorted(source.with_suffix(".o") for source in files)  # fragments that follow each other lie so
            compiler.run("-shared", *objects, "-o", output, folder=scratch)
        COMPILER.check()
        host_sources.check()

    return cached("fast", f"{key}.so", build)
