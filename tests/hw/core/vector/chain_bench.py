# amaranth: UnusedElaboratable=no
"""The vector unit with chains beside the golden model of the chip, on the fast engine, with memories that grant, delay
and scramble like the real ones."""

import gc
import random
from functools import cache

import numpy as np
from amaranth.lib import data
from state_model import StateModel

from sley.abi.config import ChipConfig
from sley.abi.timing import SRAM_READ
from sley.hw.core.unit import UnitCommand
from sley.hw.core.vector.reads import READ_PORTS
from sley.hw.core.vector.unit import VectorUnit
from sley.hw.elaboration.widths import remember_widths
from sley.sim import Simulation
from sley.sim.engines.design_text import cached_text
from sley.sim.fast.run.convert import design_ports, design_rtlil
from sley.sim.fast.run.snapshot import Snapshot
from sley.sim.model.cycles.twins import Beside, twin_of

COMMAND = data.Layout.cast(UnitCommand)
WRITE_PORTS = ("scratchpad_write", "accumulator_write")


@cache
def simulation(config: ChipConfig) -> tuple[Simulation, Snapshot, data.Layout, Beside | None]:
    """The unit, its state before all, what its fault record is, and its twin."""
    unit = VectorUnit(config)
    layout = data.Layout.cast(unit.fault.shape())
    sim = Simulation(cached_text("rtlil", "il", unit_rtlil, config, "vector unit"))
    return sim, sim.snapshot(), layout, twin_of(unit)


def unit_rtlil(config: ChipConfig, _unit: str) -> str:
    """RTLIL of the unit, made in a process of its own, once for all that run these benches."""
    gc.disable()  # it ends soon
    remember_widths()
    unit = VectorUnit(config)
    return design_rtlil(unit, design_ports(unit, None), "top")


class ChainBench:
    """The unit between a command stream, a signal stream and two memories, and the model beside it.

    Members: ``faults``: (code, pc, address) as raised; ``accepted``, ``signalled``: cycles of commands and of signal
    sets; ``signals``: the sets; ``asked``, ``granted``,
    ``written``: requests of ports, reads and writes that they were granted; ``reads_of_a``: cycles of the reads of A;
    ``hold_writes``: no write is granted.
    """

    def __init__(self, config: ChipConfig, *, seed: int = 0, grant: float = 1.0, one_bank: bool = False) -> None:
        self.config, self.grant, self.one_bank = config, grant, one_bank
        self.rng = random.Random(seed)
        self.model = StateModel.random(config, np.random.default_rng(seed))
        self.memories = {"scratchpad": self.model.scratchpad.copy(), "accumulator": self.model.accumulators.copy()}
        self.sim, before, self._fault, self._twin = simulation(config)
        self.sim.restore(before)  # registers without a reset are not what another bench left: the twin has none of it
        self.faults: list[tuple[int, int, int]] = []
        self.accepted: list[int] = []
        self.signalled: list[int] = []
        self.signals: list[int] = []
        self.reads_of_a: list[int] = []
        self.written = self.asked = self.granted = self.cycle = 0
        self.hold_writes = False
        self._arriving = {port: [None] * (SRAM_READ - 1) for port in READ_PORTS}
        for name in ("command__valid", "signal__0__ready", "abort"):
            self.sim.poke(name, 0)
        for name in ("rst", "clear"):
            self.sim.poke(name, 1)
            self.sim.tick()
            self.sim.poke(name, 0)
        if self._twin:
            self._twin.reset()

    def step(self, command: dict | None = None, takes: bool = True) -> tuple[bool, bool]:
        """One cycle: offers a command, takes a signal set. Whether the command and a signal set went."""
        sim = self.sim
        sim.poke("command__valid", command is not None)
        if command is not None:
            sim.poke("command__payload", COMMAND.const(command).as_bits())
        sim.poke("signal__0__ready", takes)
        for port in (*READ_PORTS, *WRITE_PORTS):
            ready = self.rng.random() < self.grant
            if self.one_bank and port.endswith("_b"):
                ready = ready and not sim.peek(f"{port[:-1]}a__valid")
            sim.poke(f"{port}__ready", ready and not (self.hold_writes and port in WRITE_PORTS))
        reads, writes = self._reads(), self._writes()
        went = command is not None and sim.peek("command__ready") == 1
        signalled = takes and sim.peek("signal__0__valid") == 1
        assert sim.peek("retired") == signalled, f"cycle {self.cycle}"
        fault = self._fault.from_bits(sim.peek("fault"))
        if fault.valid:
            self.faults.append((int(fault.code), fault.pc, fault.address))
        if went:
            self.accepted.append(self.cycle)
        if signalled:
            self.signalled.append(self.cycle)
            self.signals.append(sim.peek("signal__0__payload"))
        if self._twin:
            self._twin.peeked(sim)
        sim.tick()
        self.cycle += 1
        for port, word in reads.items():
            queue = self._arriving[port]
            queue.append(word)
            word = queue.pop(0)
            bits = self.memories[port.partition("_")[0]][0].nbytes * 8
            sim.poke(f"{port}__data", self.rng.getrandbits(bits) if word is None else word)
        for memory, row, value in writes:
            memory[row] = value
        return went, signalled

    def _reads(self) -> dict[str, int | None]:
        """The row that each port is granted, or None."""
        found: dict[str, int | None] = {}
        for port in READ_PORTS:
            found[port] = None
            if self.sim.peek(f"{port}__valid"):
                self.asked += 1
                if self.sim.peek(f"{port}__ready"):
                    self.granted += 1
                    if port.endswith("_a"):
                        self.reads_of_a.append(self.cycle)
                    row = self.memories[port.partition("_")[0]][self.sim.peek(f"{port}__row")]
                    found[port] = int.from_bytes(row.tobytes(), "little")
        return found

    def _writes(self) -> list[tuple[np.ndarray, int, np.ndarray]]:
        """Memory, row and its new contents of each write that is granted."""
        found = []
        for port in WRITE_PORTS:
            if not self.sim.peek(f"{port}__valid"):
                continue
            self.asked += 1
            if self.sim.peek(f"{port}__ready"):
                memory, row = self.memories[port.partition("_")[0]], self.sim.peek(f"{port}__row")
                value = self.sim.peek(f"{port}__data").to_bytes(memory[0].nbytes, "little")
                enable, old = self.sim.peek(f"{port}__enable"), memory[row].tobytes()
                granule = len(old) // len(self._granules(port))
                mixed = b"".join(
                    (value if enable >> g & 1 else old)[g * granule : (g + 1) * granule]
                    for g in range(len(old) // granule)
                )
                found.append((memory, row, np.frombuffer(mixed, memory.dtype)))
                self.written += 1
        return found

    def _granules(self, port: str) -> range:
        """Portions of a row that are written on their own: halves of int8, or the whole row."""
        return range(self.config.lane_elements() if port == "scratchpad_write" else 1)

    def run(
        self,
        commands: list[dict],
        *,
        idle: float = 0.0,
        pause: float = 0.0,
        alone: bool = False,
        limit: int = 400_000,
    ) -> None:
        """Runs the commands on both and compares. ``alone``: each is offered when the one before is done."""
        first, sent = len(self.signals), 0
        while len(self.signals) < first + len(commands):
            offers = sent < len(commands) and self.rng.random() >= idle
            offers &= not alone or not self.sim.peek("busy")
            went, _ = self.step(commands[sent] if offers else None, self.rng.random() >= pause)
            sent += went
            assert self.cycle < limit, "the unit does not come to an end"
        for command in commands:
            self.model.execute(command)
        assert self.signals[first:] == [command["signal"] for command in commands]
        self.compare()

    def pulse(self, name: str, cycles: int = 1) -> None:
        """``abort`` or ``clear`` for some cycles."""
        self.sim.poke(name, 1)
        for _ in range(cycles):
            self.step(takes=False)
        self.sim.poke(name, 0)

    def adopt(self) -> None:
        """The model goes on from what is in the memories."""
        self.model.scratchpad[:], self.model.accumulators[:] = self.memories.values()

    def compare(self) -> None:
        assert self.faults == [tuple(map(int, fault)) for fault in self.model.faults]
        for name, expected in (("scratchpad", self.model.scratchpad), ("accumulator", self.model.accumulators)):
            where = np.argwhere(self.memories[name] != expected)
            assert not len(where), f"{name} differs at {where[:5].tolist()}"

    def cycles(self) -> list[int]:
        """Of each command, from its acceptance to its signal set."""
        return [end - begin for begin, end in zip(self.accepted, self.signalled, strict=True)]
