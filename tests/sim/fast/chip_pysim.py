"""The chip in Amaranth's own simulator and on the fast engine in lock-step, as a transport."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Signal as Wire
from pysim_names import PysimNames, matched
from pysim_registers import Registers

from sley.abi.config import ChipConfig
from sley.hw.chip import Chip
from sley.hw.elaboration.shared import flat_ports
from sley.sim.engines.design_text import cached_rtlil
from sley.sim.engines.options import EngineOptions
from sley.sim.engines.pysim import PysimTransport
from sley.sim.fast.emit.manifest import MemoryPlace
from sley.sim.fast.run.simulation import Simulation

ALIAS_CYCLES = 64
"""How often registers are compared that the fast engine has under other names only."""


@dataclass
class _Memory:
    name: str
    place: MemoryPlace
    slot: Any
    start: int
    end: int
    known: list[int]
    known_bytes: bytes


class PysimLockstep(PysimTransport):
    """Compares outputs before every edge, and after it all registers and memories that changed on either side.

    ``registers``: how many are compared every cycle. ``fast_only`` and ``pysim_only`` list registers and memories that
    only one side has by name. ``aliases`` are those of ``pysim_only`` that the fast engine can compute; these are
    compared every ``ALIAS_CYCLES`` cycles.
    """

    def __init__(self, config: ChipConfig, options: EngineOptions) -> None:
        chip = Chip(config)
        super().__init__(chip, options)
        self.simulation = Simulation(cached_rtlil(config))
        self.compared = 0
        design, self._state = self._simulator._design, self._simulator._engine._state
        self._names = PysimNames(design, "sley")
        self._reset = design.fragment.domains["sync"].rst
        self.fast_only: list[str] = []
        self.pysim_only: list[str] = []
        self._bind_registers()
        self._bind_memories()
        self._inputs = {name: value for name, value in self._pins() if name in self.simulation.manifest.inputs}
        self._outputs = {name: value for name, value in self._pins() if name in self.simulation.manifest.outputs}
        self._read_data = self._named(self._names.read_data())
        self._compare_state()
        self._simulator._engine.add_async_testbench(self._simulator, self._follow, background=True)

    def _bind_registers(self) -> None:
        wanted = self.simulation.manifest.registers
        registers = matched(dict(self._names.registers()), set(wanted))
        known = matched(dict(self._names.signals()), set(wanted)) | registers
        both = {name: place for name, place in wanted.items() if name in known}
        self.registers = len(both)
        self._registers = Registers(both, [self._slot(known[name]) for name in both], self.simulation._view)
        self.fast_only += sorted(wanted.keys() - known.keys())
        others = sorted(registers.keys() - wanted.keys())
        self.pysim_only += others
        self.aliases = [name for name in others if name in self.simulation.signals.widths]
        self._aliased = [self._slot(registers[name]) for name in self.aliases]

    def _bind_memories(self) -> None:
        wanted = self.simulation.manifest.memories
        memories = matched(dict(self._names.memories()), set(wanted))
        self.fast_only += sorted(wanted.keys() - memories.keys())
        self.pysim_only += sorted(memories.keys() - wanted.keys())
        self._memories = [
            _memory(name, place, self._state.slots[self._state.get_memory(memories[name])])
            for name, place in wanted.items()
            if name in memories
        ]

    def _slot(self, signal: Wire) -> Any:
        """Where pysim has the signal's value."""
        return self._state.slots[self._state.get_signal(signal)]

    def restart(self, cycles: int) -> None:
        """Holds the chip's reset for some cycles."""

        async def hold(ctx: Any) -> int:
            ctx.set(self._reset, 1)
            for _ in range(cycles):
                await ctx.tick()
            ctx.set(self._reset, 0)
            return 0

        self._run(hold)

    def _pins(self) -> Iterator[tuple[str, Any]]:
        for name, (value, _) in flat_ports(self._chip).items():
            yield name, value
        yield "rst", self._reset

    async def _follow(self, ctx: Any) -> None:
        """Gives the fast engine the inputs of every cycle and compares."""
        driven: dict[str, int] = {}
        pins = (*self._inputs.values(), *self._outputs.values())
        async for _, _, *values in ctx.tick().sample(*pins):
            for name, value in zip(self._inputs, values, strict=False):
                if driven.get(name) != value:
                    driven[name] = value
                    self.simulation.poke(name, value)
            for name, value in zip(self._outputs, values[len(self._inputs) :], strict=True):
                got = self.simulation.peek(name)
                assert got == value, f"cycle {self.compared}: output {name} is {got:#x}, {value:#x} in pysim"
            self.simulation.tick()
            self.compared += 1
            if driven["rst"]:
                self._take_read_data()
            self._compare_state()

    def _named(self, signals: Iterable[tuple[str, Wire]]) -> dict[str, Any]:
        """The pysim side of the registers of the fast engine that hold these signals."""
        find = self.simulation.signals.values
        registers = {value: name for name, value in find(self.simulation.manifest.registers).items()}
        known = matched(dict(signals), set(self.simulation.signals.widths))
        values = find(known)
        return {
            registers[values[name]]: self._slot(signal) for name, signal in known.items() if values[name] in registers
        }

    def _take_read_data(self) -> None:
        """In a reset of the domain pysim clears the data of a synchronous read port, RTLIL and Verilog keep it."""
        for name, slot in self._read_data.items():
            self.simulation.poke(name, slot.curr)

    def _compare_state(self) -> None:
        view = self.simulation._view
        wrong = self._registers.differences()
        for memory in self._memories:
            wrong += self._memory_differences(memory, view)
        if self.compared % ALIAS_CYCLES == 0:
            wrong += self._alias_differences()
        assert not wrong, f"after {self.compared} cycles: {'; '.join(wrong[:20])}"

    def _alias_differences(self) -> list[str]:
        """Registers of pysim that the fast engine knows by another name, or not as registers."""
        wrong = []
        for name, slot in zip(self.aliases, self._aliased, strict=True):
            got, value = self.simulation.peek(name), slot.curr & ((1 << self.simulation.signals.widths[name]) - 1)
            if got != value:
                wrong.append(f"{name} is {got:#x}, {value:#x} in pysim")
        return wrong

    def _memory_differences(self, memory: _Memory, view: memoryview) -> list[str]:
        now, now_bytes = memory.slot.data, bytes(view[memory.start : memory.end])
        if now == memory.known and now_bytes == memory.known_bytes:
            return []
        memory.known, memory.known_bytes = list(now), now_bytes
        wrong, mask = [], (1 << memory.place.width) - 1
        for row, value in enumerate(now):
            got = self.simulation.peek_memory(memory.name, row)
            if got != value & mask:
                wrong.append(f"{memory.name}[{row}] is {got:#x}, {value & mask:#x} in pysim")
        return wrong


def _memory(name: str, place: MemoryPlace, slot: Any) -> _Memory:
    ends = [
        piece.offset + (place.depth - 1) * pitch + piece.size
        for piece, pitch in zip(place.pieces, place.pitches, strict=True)
    ]
    return _Memory(name, place, slot, min(piece.offset for piece in place.pieces), max(ends), [], b"")
