"""One instance of a compiled design, seen from outside: any signal by name, snapshots, breakpoints, recordings.

``Simulation`` and the transport of engine ``fast`` are both instances. Values are unsigned numbers. Names are those of
the hierarchy, joined with dots and beginning with the top module (see ``signals``).
"""

import ctypes
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from sley.sim.build.cache import digest
from sley.sim.errors import FastError
from sley.sim.fast.emit.manifest import MemoryPlace, Piece, Signal, known_manifest
from sley.sim.fast.run import activity
from sley.sim.fast.run.c_api import HOOK, NOT_YET, STOPPED, declare
from sley.sim.fast.run.condition import Condition, Test, computed_condition, stored_condition
from sley.sim.fast.run.evaluate import evaluate
from sley.sim.fast.run.events import Events
from sley.sim.fast.run.recording import Recording
from sley.sim.fast.run.signals import Signals, nearest
from sley.sim.fast.run.snapshot import SavedState, Snapshot, read_state, write_state
from sley.sim.fast.run.stored import Present
from sley.sim.fast.run.waveform import check_path, write_waveform


class Instance(ABC):
    """``on_print`` is called with the text of every ``Print``; without it the text goes to ``sys.stdout``.

    A failed ``Assert`` or ``Assume`` raises ``AssertionError`` from whatever let the design run. The state is then that
    before the edge at which it failed.
    """

    def _attach(
        self,
        library: ctypes.CDLL,
        handle: int,
        rtlil: str,
        top: str | None = None,
        ties: Mapping[str, int] | None = None,
    ) -> None:
        """Takes over an instance that the library made. The other arguments are those of its ``build_library``."""
        declare(library)
        self._ties = ties or {}
        self._library = library
        self._pointer = ctypes.c_void_p(handle)
        self._rtlil = rtlil
        self._top = top
        self.manifest = known_manifest(library.fast_manifest().decode())
        self._state = (ctypes.c_uint8 * self.manifest.state_bytes).from_address(library.fast_state(handle))
        self._view = memoryview(self._state).cast("B")
        self._events = Events(self.manifest, self._view, partial(library.fast_cycle, self._pointer))
        self._callback = HOOK(self._events.fire)
        library.fast_hook(self._pointer, self._callback)
        self._spare: list[Any] = []
        self._depth = 0
        self._on_failure: Path | None = None

    def _detach(self) -> None:
        """Before the library destroys the instance."""
        self._view.release()
        self._pointer = ctypes.c_void_p()

    @abstractmethod
    def _run(self, condition: Condition, limit: int, clocks: tuple[str, ...]) -> int:
        """Runs until the condition holds, at most ``limit`` cycles; the library's status."""

    @property
    def _handle(self) -> ctypes.c_void_p:
        if not self._pointer:
            raise FastError("the simulation is closed; make a new one")
        return self._pointer

    @property
    def cycle(self) -> int:
        """Ticks so far."""
        return int(self._library.fast_cycle(self._handle))

    def settle(self) -> None:
        """Lets everything combinational follow the inputs."""
        self._check(self._library.fast_settle(self._handle))

    def _check(self, status: int) -> int:
        failure = self._events.take_failure()
        if failure is not None:
            if isinstance(failure, AssertionError):
                raise AssertionError(f"{failure}{self._written()}")
            raise failure
        if status == STOPPED:
            raise FastError("the simulation was stopped by an event")
        return status

    # Signals.

    @cached_property
    def signals(self) -> Signals:
        """All named signals; ``signals.widths`` lists them."""
        return Signals(self._rtlil, self._top, self._ties)

    def peek(self, name: str) -> int:
        """Value of any signal. One that the state does not hold is computed, the first one in a second or so."""
        self.settle()
        signal = self._stored(name)
        if signal is not None:
            return sum(self._load(piece) << piece.low for piece in signal.pieces)
        value = self._computed(name)
        leaves = Present(self.manifest, self._view)
        return int(evaluate(self.signals.netlist, [value], leaves)[value][0])

    def poke(self, name: str, value: int) -> None:
        """Sets an input, or the contents of a register."""
        inputs, registers = self.manifest.inputs, self.manifest.registers
        port = self._port(name)
        if port in inputs:
            width = inputs[port].width
            _check_value(name, value, width)
            raw = value.to_bytes(max(8, -(-width // 64) * 8), "little")
            self._library.fast_poke(self._handle, list(inputs).index(port), raw)
        elif name in registers:
            _check_value(name, value, registers[name].width)
            for piece in registers[name].pieces:
                self._store(piece, value)
        elif port in self._ties:
            raise FastError(f"{name} is always {self._ties[port]} here; the design was compiled for that")
        elif port in self.manifest.outputs or name in self.signals.widths:
            raise FastError(f"{name} is computed from other signals; poke the inputs and registers that it depends on")
        else:
            raise FastError(f"there is no input or register {name!r}{nearest(name, [*inputs, *registers])}")

    def peek_memory(self, name: str, row: int) -> int:
        """A row of a memory."""
        memory = self._memory(name, row)
        return sum(
            self._load(_moved(piece, row * pitch)) << piece.low
            for piece, pitch in zip(memory.pieces, memory.pitches, strict=True)
        )

    def poke_memory(self, name: str, row: int, value: int) -> None:
        """Sets a row of a memory."""
        memory = self._memory(name, row)
        _check_value(f"{name}[{row}]", value, memory.width)
        for piece, pitch in zip(memory.pieces, memory.pitches, strict=True):
            self._store(_moved(piece, row * pitch), value)

    def _memory(self, name: str, row: int) -> MemoryPlace:
        memory = self.manifest.memories.get(name)
        if memory is None:
            raise FastError(f"there is no memory {name!r}{nearest(name, self.manifest.memories)}")
        if not 0 <= row < memory.depth:
            raise FastError(f"{name}[{row}]: the memory has rows 0..{memory.depth - 1}")
        return memory

    @cached_property
    def _top_name(self) -> str:
        found = re.search(r"^module \\?(\S+)", self._rtlil, re.MULTILINE)
        return self._top or (found[1] if found else "")

    def _port(self, name: str) -> str:
        """The name of a top-level port without that of the top module."""
        return name.removeprefix(f"{self._top_name}.")

    def _stored(self, name: str) -> Signal | None:
        """Where the state has the signal, if it does."""
        port, manifest = self._port(name), self.manifest
        for known, signals in ((port, manifest.outputs), (port, manifest.inputs), (name, manifest.registers)):
            if known in signals:
                return signals[known]
        return None

    def _computed(self, name: str) -> int:
        """The value of the netlist of ``signals`` that computes the signal."""
        return self.signals.values([name])[name]

    def _load(self, piece: Piece) -> int:
        return self._number(piece.offset, piece.size)

    def _number(self, offset: int, size: int) -> int:
        return int.from_bytes(self._view[offset : offset + size], "little")

    def _store(self, piece: Piece, value: int) -> None:
        part = value >> piece.low & ((1 << piece.width) - 1)
        self._library.fast_write(self._handle, piece.offset, piece.size, part)

    # The whole state.

    def snapshot(self, memory: bool = False) -> Snapshot:
        """The complete state, to come back to with ``restore``; with ``memory`` also the device memory of a chip."""
        handle = self._handle
        buffer: Any = self._spare.pop() if self._spare else b""
        size = self._library.fast_snapshot(handle, buffer, len(buffer), memory) if buffer else 0
        if not size:
            # Some room more: what is in flight in the DRAM differs from cycle to cycle.
            buffer = ctypes.create_string_buffer(self._library.fast_snapshot_bytes(handle, memory) + 4096)
            size = self._library.fast_snapshot(handle, buffer, len(buffer), memory)
        cycle = int.from_bytes(buffer[self._cycle_offset : self._cycle_offset + 8], "little")
        return Snapshot(buffer, size, cycle, self.manifest.layout, memory, self._spare)

    def restore(self, snapshot: Snapshot) -> None:
        """Comes back to a snapshot of this or another instance of the same design. A recording begins again."""
        if snapshot.layout != self.manifest.layout:
            raise FastError("the snapshot is of another design; restore it where it was taken")
        self._library.fast_restore(self._handle, snapshot.buffer, snapshot.memory)
        self._changed()

    @cached_property
    def _cycle_offset(self) -> int:
        return int(self._library.fast_state_bytes())

    def _changed(self) -> None:  # noqa: B027
        """The state was replaced: what is known of it is no more."""

    def save(self, path: str | Path) -> None:
        """Writes the complete state to a file, device memory included."""
        snapshot = self.snapshot(memory=True)
        state = ctypes.string_at(snapshot.buffer, snapshot.size)
        design = digest(self._rtlil, self._top or "")
        write_state(Path(path), SavedState(snapshot.cycle, design, self.manifest.layout, self._device_memory, state))

    def load(self, path: str | Path) -> None:
        """Comes back to a saved state of the same design. Raises ``FastError`` if it is of another one."""
        saved = read_state(Path(path))
        saved.check(Path(path), digest(self._rtlil, self._top or ""), self.manifest.layout, self._device_memory)
        self._library.fast_restore(self._handle, saved.state, bool(saved.memory))
        self._library.fast_touch(self._handle)
        self._changed()

    @property
    def _device_memory(self) -> int:
        """Bytes of memory outside of the design."""
        return 0

    # Breakpoints.

    def run_until(
        self,
        name: str,
        value: int,
        *clocks: str,
        limit: int,
        mask: int | None = None,
        equal: bool = True,
    ) -> int:
        """Runs until ``name & mask == value`` (``!=`` without ``equal``) and returns the cycles that it took.

        The library checks it in every cycle, with all signals settled, the first time before any cycle. ``clocks`` are
        those that tick (all of them without a name; a chip has one). Raises ``FastError`` when ``limit`` cycles were
        not enough.
        """
        start = self.cycle
        signal = self._stored(name)
        width = signal.width if signal is not None else self.signals.widths[self.signals.full_name(name)]
        bits = (1 << width) - 1
        chosen = bits if mask is None else mask
        _check_value(f"mask of {name}", chosen, width)
        _check_value(name, value, width)
        if value & ~chosen:
            raise FastError(f"{name} & {chosen:#x} can never be {value:#x}; set the mask for all bits of the value")
        test = Test(value, chosen, equal)
        if signal is not None:
            condition = stored_condition(signal.pieces, test)
        else:
            number = self._computed(name)
            condition = computed_condition(self.signals.netlist, number, self.manifest, test)
        if self._check(self._run(condition, limit, clocks)) == NOT_YET:
            raise FastError(
                f"{test.describe(name, width)} did not hold within {limit} cycles, it is {self.peek(name):#x}"
                f"{self._written()}"
            )
        return self.cycle - start

    # Recordings.

    def record(self, depth: int, on_failure: str | Path | None = None) -> None:
        """Keeps the last ``depth`` cycles from now on; 0 ends it.

        ``on_failure`` names a file that ``write_vcd`` makes when an assertion fails or a limit of cycles is exceeded.
        """
        if depth < 0:
            raise FastError(f"a recording of {depth} cycles is not possible; record 1 or more, or 0 to end it")
        path = Path(on_failure) if on_failure is not None and depth else None
        if path is not None:
            check_path(path)
        self._library.fast_record(self._handle, depth)
        self._depth = depth
        self._on_failure = path

    def recording(self) -> Recording:
        """The recorded cycles."""
        return Recording(self._library, lambda: self._handle, self.manifest, self._depth)

    def write_vcd(self, path: str | Path, signals: Iterable[str] | None = None) -> None:
        """Writes the recorded cycles as a waveform, VCD or (with the program vcd2fst) FST, as the suffix says.

        ``signals``: names of signals, or of instances for all below them; all that have a name if not given.
        """
        write_waveform(Path(path), self.recording(), self.signals, signals)

    def _written(self) -> str:
        """Writes the file of ``on_failure``, if there is one; the end of an error message that names it."""
        path, self._on_failure = self._on_failure, None  # one failure, one file
        if path is None:
            return ""
        try:
            self.write_vcd(path)
        except (OSError, MemoryError) as error:
            return f"; the recording could not be written: {error}"
        finally:
            self._on_failure = path
        return f"; the last {self.recording().moments - 1} cycles are in {path}"

    # Events and activity.

    @property
    def on_print(self) -> Callable[[str], object]:
        return self._events.on_print

    @on_print.setter
    def on_print(self, function: Callable[[str], object]) -> None:
        self._events.on_print = function

    @property
    def covered(self) -> Mapping[str, int]:
        """How often each ``Cover`` was hit, by path and source location; 0 for one that never was."""
        return activity.covers(self.manifest, self._library.fast_counts(self._handle))

    def activity(self) -> Mapping[str, int]:
        """How often each fragment of the compiled design has run since the start: work done, not bits toggled.

        A fragment is named ``instance/elements/stage``; it runs in a cycle only if something that it reads changed.
        """
        return activity.fragment_runs(self.manifest, self._view)

    def toggles(self) -> Mapping[str, int]:
        """Bits of registers that changed in the recorded cycles, summed over the registers of each instance."""
        return activity.toggles(self.recording())


def _check_value(name: str, value: int, width: int) -> None:
    if not 0 <= value < 1 << width:
        raise FastError(f"{name}={value}: it takes 0..{(1 << width) - 1}")


def _moved(piece: Piece, distance: int) -> Piece:
    return Piece(piece.low, piece.width, piece.offset + distance, piece.size)
