"""A recording as a waveform file.

A cycle takes 10 ns. What a register has after ``n`` cycles stands from ``10 * n - 5`` ns on, where the clock rises; it
falls at ``10 * n``. With clocks that act on their falling edge, what is between two rising edges stands at both.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sley.sim.errors import FastError
from sley.sim.fast.run.evaluate import Array, evaluate
from sley.sim.fast.run.recording import Block, Recording
from sley.sim.fast.run.signals import Signals

PERIOD, HALF = 10, 5

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
"""Names that viewers take as they are; others begin with a backslash, as in Verilog."""


def check_path(path: Path) -> str | None:
    """The program that makes a file of this name from VCD, if one is needed. Raises ``FastError`` if there is none."""
    if path.suffix == ".vcd":
        return None
    if path.suffix != ".fst":
        raise FastError(f"{path}: waveforms are written to files named *.vcd or *.fst")
    converter = shutil.which("vcd2fst")
    if converter is None:
        raise FastError(
            f"{path}: FST files are made by the program vcd2fst, which is not installed: install gtkwave "
            "(Debian, Ubuntu: apt install gtkwave; macOS: brew install gtkwave), or write a file named *.vcd"
        )
    return converter


def write_waveform(path: Path, recording: Recording, signals: Signals, names: Iterable[str] | None) -> None:
    """Writes the recorded cycles of these signals (see ``Signals.chosen``) as ``.vcd`` or ``.fst``."""
    converter = check_path(path)
    chosen = signals.driven(name for name in signals.chosen(names) if signals.widths[name])
    if converter is None:
        with path.open("w") as file:
            _Writer(file, recording, signals, chosen).write()
        return
    with tempfile.TemporaryDirectory() as folder:
        vcd = Path(folder) / "recording.vcd"
        with vcd.open("w") as file:
            _Writer(file, recording, signals, chosen).write()
        result = subprocess.run([converter, vcd, path], capture_output=True, text=True)
    if result.returncode:
        raise FastError(f"{path}: vcd2fst failed: {result.stderr.strip() or result.stdout.strip()}")


class _Writer:
    def __init__(self, file: Any, recording: Recording, signals: Signals, names: list[str]) -> None:
        self._file = file
        self._recording = recording
        self._signals = signals
        self._names: dict[int, list[str]] = {}
        """Names of each value of the netlist."""
        for name, value in signals.values(names).items():
            self._names.setdefault(value, []).append(name)
        clocks = recording.manifest.clocks
        by_name = {port.name: port.value for port in signals.netlist.inputs}
        self._clocks = {number: by_name[clock.name] for number, clock in enumerate(clocks)}
        """The value of each clock."""
        self._falling = any(not clock.rising for clock in clocks)

    def write(self) -> None:
        from vcd import VCDWriter

        netlist = self._signals.netlist
        writer: Any = None
        variables: dict[int, Any] = {}
        last: dict[int, Any] = {}
        end = 0
        held: list[tuple[int, int, int]] = []  # edges of clocks after the block's last moment
        for block in self._recording.blocks(netlist, self._names):
            values = evaluate(netlist, self._names, block)
            times = self._times(block)
            end = max(end, int(block.when.cycle[-1]) * PERIOD, int(times[-1]))
            if writer is None:
                last = {value: array[0] for value, array in values.items()}
                writer = VCDWriter(
                    self._file,
                    timescale="1 ns",
                    date="",
                    comment="recorded by Sley's fast engine",
                    check_values=False,
                    init_timestamp=int(times[0]),
                )
                variables = {value: self._register(writer, value, int(last[value])) for value in self._names}
            found = [*held, *self._changes(block, values, times, last)]
            found.sort(key=lambda change: change[0])
            held = [change for change in found if change[0] > times[-1]]
            for time, value, number in found[: len(found) - len(held)]:
                writer.change(variables[value], time, number)
            last = {value: array[-1] for value, array in values.items()}
        for time, value, number in held:
            writer.change(variables[value], time, number)
        if writer is not None:
            writer.close(max(end, *(change[0] for change in held), 0))

    def _register(self, writer: Any, value: int, initial: int) -> Any:
        width = self._signals.netlist.width[value]
        variable: Any = None
        for name in self._names[value]:
            path, wire = self._signals.scopes[name]
            shown = wire if _PLAIN.fullmatch(wire) else f"\\{wire}"
            scope = tuple(path.split("."))
            if variable is None:
                variable = writer.register_var(scope, shown, "wire", size=width, init=initial)
            else:
                writer.register_alias(scope, shown, variable)
        return variable

    def _times(self, block: Block) -> npt.NDArray[np.int64]:
        cycle, half = block.when.cycle.astype(np.int64), block.when.half.astype(np.int64)
        early = np.ones_like(half) if not self._falling else half
        return np.maximum(cycle * PERIOD - HALF * early, 0)

    def _changes(
        self, block: Block, values: dict[int, Array], times: npt.NDArray[np.int64], last: dict[int, Any]
    ) -> list[tuple[int, int, int]]:
        """Time, value of the netlist, and its number."""
        clocks = {value for value in self._clocks.values() if value in values}
        found: list[tuple[int, int, int]] = []
        for value, array in values.items():
            if value in clocks:
                continue
            changed = np.flatnonzero(array[1:] != array[:-1]) + 1
            if array[0] != last[value]:
                found.append((int(times[0]), value, int(array[0])))
            if len(changed):
                found += zip(times[changed].tolist(), [value] * len(changed), array[changed].tolist(), strict=True)
        for cycle, half, edges in zip(block.when.cycle, block.when.half, block.when.edges, strict=True):
            if edges:
                middle = (int(cycle) + 1 - int(half)) * PERIOD
                ticking = {value for number, value in self._clocks.items() if int(edges) >> number & 1}
                found += [(middle - HALF, value, 1) for value in ticking & clocks]
                found += [(middle, value, 0) for value in ticking & clocks]
        return found
