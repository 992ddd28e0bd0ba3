"""Whether a program can go wrong whatever the speed of its units: races, deadlocks, semaphores that are left over.

One block is followed in one order in which its commands can happen. Who waits for a semaphore, and who signals it, are
units that take their commands in order, so if that order ends, every order does; and two commands of different units
that use one row, or one byte, are ordered in each of them if the clock of the later one knows the earlier one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import SEMAPHORE_MAX, SEMAPHORES
from sley.runtime.errors import KernelError
from sley.runtime.tile.check.accesses import MEMORY, Access, accesses
from sley.runtime.tile.check.clocks import Agent, Clock, Clocks, agent_of, semaphores
from sley.runtime.tile.check.commands import Command, commands
from sley.runtime.tile.check.gangs import unequal
from sley.runtime.tile.compiler import Compiled
from sley.runtime.tile.types import ArrayType

LIMIT = 1_000_000
"""Instructions of a block that are followed."""
LARGEST = 1 << 26
"""Bytes of all arrays together."""
APART = 64
"""Bytes between arrays that belong to none."""
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Finding:
    """What can go wrong. ``kind``: race, deadlock, leftover, outside, unwritten, unequal, fault.
    ``pc``: instructions."""

    kind: str
    pc: tuple[int, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def check(compiled: Compiled, config: ChipConfig, arrays: Mapping[str, ArrayType]) -> list[Finding]:
    """What can go wrong in any block of a compiled kernel, each kind once for the same instructions. ``arrays``: those
    of the launch, in the order of the program's arguments. Raises ``LimitError`` for a program that runs for longer
    than a million instructions, ``KernelError`` for arrays of more than 64 MiB together."""
    found: dict[tuple[str, tuple[int, ...]], Finding] = {}
    memory = Memory(list(arrays.values()))
    streams = {
        (x, y, z): commands(compiled.program.words, config, memory.addresses, (x, y, z), compiled.grid, LIMIT)
        for z, y, x in product(*(range(side) for side in reversed(compiled.grid)))
    }
    try:
        findings = [finding for stream in streams.values() for finding in Block(stream, config, memory).run()]
    except IndexError as error:
        raise KernelError(f"a row that no memory has: {error}") from None
    if compiled.gang:
        findings += [Finding("unequal", (command.pc,), text) for command, text in unequal(streams)]
    for finding in findings:
        found.setdefault((finding.kind, finding.pc), finding)
    return list(found.values())


class Memory:
    """Arrays beside each other, and which bytes belong to which of them."""

    def __init__(self, arrays: Sequence[ArrayType]) -> None:
        spans = [
            sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True)) * a.dtype.bytes + a.dtype.bytes
            for a in arrays
        ]
        starts = np.cumsum([APART, *(-(-span // APART) * APART + APART for span in spans)])
        self.addresses = [int(start) for start in starts[:-1]]
        self.bytes = int(starts[-1])
        if self.bytes > LARGEST:
            raise KernelError(f"the arrays have {self.bytes:,} bytes; a program is checked with at most {LARGEST:,}")
        self.owner = np.full(self.bytes, -1, np.int16)
        for number, (array, start) in enumerate(zip(arrays, self.addresses, strict=True)):
            size = array.dtype.bytes
            shape, strides = (*array.shape, size), (*(s * size * 2 for s in array.strides), 2)
            np.lib.stride_tricks.as_strided(self.owner[start:], shape, strides)[...] = number

    def whole(self, address: int) -> Numbers:
        """All bytes of the array that has this one."""
        return np.flatnonzero(self.owner == self.owner[address])


class Block:
    """One block of a program on a core."""

    def __init__(self, stream: Sequence[Command], config: ChipConfig, memory: Memory) -> None:
        self.stream, self.config, self.memory = stream, config, memory
        self.clocks = Clocks(stream)
        sizes = {"scratchpad": config.scratchpad_rows, "accumulators": config.accumulator_rows, MEMORY: memory.bytes}
        self._last: dict[tuple[str, Agent, bool], Numbers] = {}
        self._by: dict[Agent, list[Command]] = {agent: [] for agent in Agent}
        self._sizes = sizes
        self._written = {place: np.zeros(size, bool) for place, size in sizes.items() if place != MEMORY}
        self.findings: list[Finding] = []

    def run(self) -> list[Finding]:
        """Follows it to its end, or to where it stands still."""
        counts = [0] * SEMAPHORES
        queues: dict[Unit, deque[tuple[Command, Clock]]] = {unit: deque() for unit in Unit}
        place, moved = 0, True
        while moved:
            moved = False
            for queue in queues.values():
                while queue and _passes(queue[0][0], counts):
                    command, issued = queue.popleft()
                    self._do(command, issued)
                    moved = True
            while place < len(self.stream):
                command = self.stream[place]
                if command.unit is Unit.SEQUENCER:
                    if not _passes(command, counts):
                        break
                    self._do(command, self.clocks.issued)
                elif len(queues[command.unit]) == self.config.unit_queue:
                    break
                else:
                    queues[command.unit].append((command, self.clocks.issued))
                place, moved = place + 1, True
        heads = [queue[0][0] for queue in queues.values() if queue]
        if place < len(self.stream) and self.stream[place].unit is Unit.SEQUENCER:
            heads.append(self.stream[place])
        if heads:
            self._standstill(heads, counts)
        elif any(counts):
            left = {number: count for number, count in enumerate(counts) if count}
            text = ", ".join(f"semaphore {number} at {count}" for number, count in left.items())
            self.findings.append(Finding("leftover", (), f"a block ends with {text}; each must be 0"))
        return self.findings

    def _standstill(self, heads: Sequence[Command], counts: Sequence[int]) -> None:
        parts = []
        for command in heads:
            missing = [number for number in semaphores(command.wait) if not counts[number]]
            full = [number for number in semaphores(command.signal) if counts[number] == SEMAPHORE_MAX]
            what = f"waits for {_named(missing)}" if missing else f"cannot signal {_named(full)}, which is full"
            parts.append(f"{command.unit.name} {what} at instruction {command.pc}")
        self.findings.append(Finding("deadlock", tuple(c.pc for c in heads), "; ".join(parts)))

    def _do(self, command: Command, issued: Clock) -> None:
        clock, number = self.clocks.begin(command, issued)
        agent = agent_of(command)
        self._by[agent].append(command)
        try:
            for access in accesses(command, self.config):
                self._access(command, access, agent, number, clock)
        except KernelError as error:
            self.findings.append(Finding("fault", (command.pc,), str(error)))

    def _access(self, command: Command, access: Access, agent: Agent, number: int, clock: Clock) -> None:
        place, rows = access.place, access.rows
        size = self._sizes[place]
        if len(rows) and (rows.min() < 0 or rows.max() >= size):
            wrong = int(rows.min() if rows.min() < 0 else rows.max())
            self._outside(command, f"{place} {wrong}, of {size:,}")
            return
        if access.anywhere:
            rows = self.memory.whole(int(rows[0]))
        elif place == MEMORY:
            owners = self.memory.owner[rows]
            if owners.min() < 0 or owners.min() != owners.max():
                self._outside(command, "bytes of no array, or of two")
        elif access.writes:
            self._written[place][rows] = True
        elif not self._written[place][rows].all():
            row = int(rows[~self._written[place][rows]][0])
            text = f"instruction {command.pc} reads row {row} of the {place}, which nobody has written"
            self.findings.append(Finding("unwritten", (command.pc,), text))
        for other in Agent:
            if _unit(other) is command.unit:
                continue
            for writes in (True, False) if access.writes else (True,):
                last = self._last.get((place, other, writes))
                if last is not None and (latest := int(last[rows].max())) >= clock[other]:
                    self._race(command, self._by[other][latest], access, writes)
        table = self._last.setdefault((place, agent, access.writes), np.full(size, -1, np.int64))
        table[rows] = number

    def _outside(self, command: Command, what: str) -> None:
        text = f"instruction {command.pc} of {command.unit.name}: {what}"
        self.findings.append(Finding("outside", (command.pc,), text))

    def _race(self, command: Command, other: Command, access: Access, wrote: bool) -> None:
        did, does = "writes" if wrote else "reads", "writes" if access.writes else "reads"
        text = (
            f"{other.unit.name} {did} {access.place} at instruction {other.pc}, {command.unit.name} {does} the same at "
            f"instruction {command.pc}, and neither waits for the other"
        )
        self.findings.append(Finding("race", (other.pc, command.pc), text))


def _unit(agent: Agent) -> Unit:
    return Unit.MATRIX if agent in (Agent.MATMUL, Agent.WEIGHTS) else Unit[agent.name]


def _passes(command: Command, counts: list[int]) -> bool:
    """Takes its waits and gives its signals, if all can be."""
    waits, signals = semaphores(command.wait), semaphores(command.signal)
    if any(not counts[number] for number in waits):
        return False
    after = [counts[number] - (number in waits) for number in signals]
    if any(count == SEMAPHORE_MAX for count in after):
        return False
    for number in waits:
        counts[number] -= 1
    for number in signals:
        counts[number] += 1
    return True


def _named(numbers: Sequence[int]) -> str:
    return f"semaphore {', '.join(map(str, numbers))}"
