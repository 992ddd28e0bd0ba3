"""Cycles of SCALE-Sim for the same products on the same array: the peer of ``sley bench suite``.

SCALE-Sim (Samajdar et al., ISPASS 2020; version 3: Raj et al., ISPASS 2025) simulates a weight-stationary systolic
array cycle by cycle. Here it runs in its mode CALC, which takes the bandwidth of memory as unlimited: no cycle is a
stall, as if every operand were on chip. For each fold of the weights (R rows, C columns of the array) it loads them,
streams M rows and drains, one after the other:

    cycles = ceil(K / R) * ceil(N / C) * (M + 2 R + C - 2)

Its report numbers the cycles from 0, so "Total Cycles" is one less. It simulates some 20,000 cycles a second, so
products beyond a limit are not run: their cycles are those of the formula, and every product that is run must agree
with it.

SCALE-Sim runs in processes and a virtual environment of its own, for it needs an older numpy. What it found is kept,
for it is the same every time: in the file ``scalesim/VERSION-RxC.json`` of the cache, next to that environment.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from sley.abi.cache import unusable
from sley.abi.errors import SleyError
from sley.bench.gemm.shapes import Size
from sley.runtime.cache import cache_folder

VERSION = "3.0.0"
REQUIREMENTS = (
    f"scalesim=={VERSION}",
    "numpy<2.4",
)  # it converts arrays of one element to int, which numpy 2.4 refuses

BATCH_CYCLES = 500_000
"""Cycles that one process of SCALE-Sim simulates: it keeps the traces of all its layers in memory."""

TOTAL_CYCLES = "Total Cycles"

_VERSION_OF = "from importlib.metadata import version; print(version('scalesim'))"
# Its own command line writes traces of every cycle to files, whatever its options say.
_RUN = """
from scalesim.scale_sim import scalesim
scalesim(save_disk_space=True, verbose=False, config="chip.cfg", topology="shapes.csv", layout="layout.csv",
         input_type_gemm=True).run_scale(top_path=".")
"""
_CONFIG = """
[general]
run_name = report
[architecture_presets]
ArrayHeight = {rows}
ArrayWidth = {columns}
Dataflow = ws
IfmapSramSzkB = 1024
FilterSramSzkB = 1024
OfmapSramSzkB = 1024
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
ReadRequestBuffer = 64
WriteRequestBuffer = 64
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
[layout]
IfmapCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterCustomLayout = False
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
"""
"""SRAM sizes and layout do not matter in the mode CALC, but must be there."""


class ScaleSimError(SleyError):
    """SCALE-Sim cannot be installed or run, or says something that its formula does not explain."""


@dataclass(frozen=True)
class Array:
    """The systolic array that SCALE-Sim simulates; one MAC an element and cycle."""

    rows: int
    columns: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}"

    def formula(self, size: Size) -> int:
        """Cycles of a product, by the formula above."""
        m, n, k = size
        return -(-k // self.rows) * -(-n // self.columns) * (m + 2 * self.rows + self.columns - 2)


@dataclass(frozen=True)
class Peer:
    """Cycles of a product on the peer, and whether it was run or its formula was used."""

    cycles: int
    run: bool


Say = Callable[[str], None]


def environment(python: Path | None, say: Say) -> Path:
    """The Python that has SCALE-Sim: the given one, or that of an environment in the cache, made on first use."""
    if python is None:
        folder = _folder() / f"{VERSION}-py{sys.version_info.major}.{sys.version_info.minor}"
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        with _kept(), FileLock(folder.with_name(f"{folder.name}.lock")):
            if not (folder / "complete").exists():
                say(f"installing SCALE-Sim {VERSION} into {folder}")
                _install(folder, python)
    try:
        result = subprocess.run([python, "-c", _VERSION_OF], capture_output=True, text=True)
    except OSError as error:
        raise ScaleSimError(f"{python} is no Python: {error.strerror}") from None
    found = result.stdout.strip()
    if found != VERSION:
        what = f"SCALE-Sim {found}" if found else "no SCALE-Sim"
        raise ScaleSimError(f"{python} has {what}; the suite compares with version {VERSION}: {' '.join(REQUIREMENTS)}")
    return python


def peers(python: Path, array: Array, sizes: Sequence[Size], limit: int, say: Say) -> dict[Size, Peer]:
    """What SCALE-Sim says of every size; it is run for those of at most ``limit`` cycles."""
    known = _read_known(array)
    wanted = [size for size in dict.fromkeys(sizes) if array.formula(size) <= limit]
    missing = [size for size in wanted if size not in known]
    for number, batch in enumerate(batches := list(_batches(array, missing)), 1):
        say(f"SCALE-Sim {array}: part {number} of {len(batches)}, {sum(map(array.formula, batch)):,} cycles")
        known |= _run(python, array, batch)
        for size in batch:
            if known[size] != array.formula(size):
                raise ScaleSimError(f"SCALE-Sim took {known[size]} cycles for {size}, not {array.formula(size)}")
        _write_known(array, known)
    return {size: Peer(array.formula(size), size in wanted) for size in sizes}


def parse_report(text: str) -> list[int]:
    """Cycles of every layer of a ``COMPUTE_REPORT.csv``."""
    header, *rows = csv.reader(text.splitlines(), skipinitialspace=True)
    if TOTAL_CYCLES not in header:
        raise ScaleSimError(f"the report of SCALE-Sim has no column {TOTAL_CYCLES!r}, but {', '.join(header)}")
    column = header.index(TOTAL_CYCLES)
    return [int(row[column]) + 1 for row in rows]


def _batches(array: Array, sizes: Sequence[Size]) -> Iterator[list[Size]]:
    batch: list[Size] = []
    for size in sizes:
        if batch and sum(map(array.formula, [*batch, size])) > BATCH_CYCLES:
            yield batch
            batch = []
        batch.append(size)
    if batch:
        yield batch


def _run(python: Path, array: Array, sizes: Sequence[Size]) -> dict[Size, int]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "chip.cfg").write_text(_CONFIG.format(rows=array.rows, columns=array.columns))
        layers = [f"layer{index},{m},{n},{k},\n" for index, (m, n, k) in enumerate(sizes)]
        (folder / "shapes.csv").write_text("".join(["layer,M,N,K,\n", *layers]))
        (folder / "layout.csv").write_text("\n")
        result = subprocess.run([python, "-c", _RUN], cwd=folder, capture_output=True, text=True)
        report = folder / "report" / "COMPUTE_REPORT.csv"
        if result.returncode or not report.exists():
            raise ScaleSimError(f"SCALE-Sim failed: {_last_line(result)}")
        return dict(zip(sizes, parse_report(report.read_text()), strict=True))


def _install(folder: Path, python: Path) -> None:
    create = [sys.executable, "-m", "venv", "--clear", str(folder)]
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS]
    for command in (create, install):
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            raise ScaleSimError(
                f"SCALE-Sim cannot be installed: {_last_line(result)}. It comes from PyPI; without network give "
                "--scalesim-python, a Python that has it, or --no-scalesim"
            )
    (folder / "complete").touch()


def _last_line(result: subprocess.CompletedProcess[str]) -> str:
    return ((result.stderr.strip() or result.stdout.strip()).splitlines() or [f"exit code {result.returncode}"])[-1]


def _folder() -> Path:
    """Next to the compiled engines. Nothing else removes files from it: it has no tag."""
    return cache_folder() / "scalesim"


@contextmanager
def _kept() -> Iterator[None]:
    """Around everything that is read from the folder or written to it, which exists from then on."""
    try:
        _folder().mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ScaleSimError(unusable(cache_folder(), error)) from None


def _known_file(array: Array) -> Path:
    return _folder() / f"{VERSION}-{array}.json"


def _read_known(array: Array) -> dict[Size, int]:
    path = _known_file(array)
    with _kept():
        if not path.exists():
            return {}
        text = path.read_text()
    try:
        return {(m, n, k): cycles for m, n, k, cycles in json.loads(text)}
    except (ValueError, TypeError) as error:
        raise ScaleSimError(f"{path} is no list of products and cycles ({error}): remove it") from None


def _write_known(array: Array, known: dict[Size, int]) -> None:
    path = _known_file(array)
    with _kept():
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            json.dump([[*size, cycles] for size, cycles in known.items()], file)
        Path(file.name).replace(path)
