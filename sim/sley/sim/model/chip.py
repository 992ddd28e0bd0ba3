"""The golden model of a whole chip behind its registers: exact results, no notion of cycles yet.

Its time counts steps (one instruction or packet action each), so time stamps order events but mean nothing else.
"""

from collections.abc import Callable

from sley.abi.config import ChipConfig
from sley.abi.counters import CounterGroup
from sley.abi.faults import UNITS, QueueState, Unit
from sley.abi.registers import Access, PlacedRegister, RegisterMap
from sley.sim.model.command import CommandModel, QueueModel
from sley.sim.model.compiled.core import CompiledCore
from sley.sim.model.compiled.library import CompiledModel
from sley.sim.model.compiled.memory import CompiledMemory
from sley.sim.model.compiled.sanitized import SanitizedCore
from sley.sim.model.core import CoreModel
from sley.sim.model.memory import AddressSpaces, ModelMemory
from sley.sim.model.sanitize.kinds import Sanitizer
from sley.sim.model.sanitize.packets import Packets
from sley.sim.model.sanitize.reports import Reports
from sley.sim.model.sanitize.shadow import Allocations, ShadowMemory
from sley.sim.model.sequencer import NumpyCore


class ModelChip:
    """Registers in front of the command processor; ``run`` lets time pass.

    Parameters
    ----------
    config, memory_bytes: the chip, and the size of its memory.
    compiled: the cores are C, which needs a C compiler; otherwise they are Python and numpy, and as exact.
    sanitizers: that watch the programs of compiled cores.

    Attributes
    ----------
    reports: of the sanitizers. watch: for the driver, if there are any.
    """

    def __init__(
        self,
        config: ChipConfig,
        memory_bytes: int,
        compiled: bool = True,
        sanitizers: frozenset[Sanitizer] = frozenset(),
    ):
        self.config = config
        self.watch: ShadowMemory | None = None
        self._allocations = Allocations()
        self.reports = Reports(sanitizers, self._allocations)
        self.map = RegisterMap(config)
        self.memory = ModelMemory(memory_bytes, config.addr_bits)
        self.spaces = AddressSpaces(config, self.memory, self.map["CONTEXT0.ROOT"].layout)
        self.command = CommandModel(config, self.spaces, self._cores(compiled))
        if self.watch is not None:
            self.command.watch = Packets(self.spaces, self.watch, self.reports)
        self.values = {r.address: r.layout.reset for r in self.map}
        self.time_latch = 0

    def _cores(self, compiled: bool) -> list[CoreModel]:
        if not compiled:
            return [NumpyCore(self.config, self.spaces) for _ in range(self.config.cores)]
        sanitized = bool(self.reports.sanitizers)
        library = CompiledModel(self.config, sanitized)
        memory = CompiledMemory(library, self.spaces)
        if sanitized:
            self.watch = self.memory.shadow = ShadowMemory(library.call, memory.handle, self._allocations)
            return [
                SanitizedCore(self.config, self.spaces, library, memory, number, self.reports)
                for number in range(self.config.cores)
            ]
        return [CompiledCore(self.config, self.spaces, library, memory) for _ in range(self.config.cores)]

    def run(self, steps: int, until_irq: bool = False) -> None:
        """At most ``steps`` steps; stops early when nothing can move any more."""
        interrupts = self.command.interrupts
        end = self.command.time + steps
        while self.command.time < end:
            if not self.command.step():
                if interrupts.due is None or interrupts.due <= self.command.time:
                    return
                self.command.time = min(end, interrupts.due)  # only the clock of the interrupts moves
            if until_irq and self.irq:
                return

    @property
    def irq(self) -> bool:
        return self.command.interrupts.line(self.command.time)

    def _irq_status(self) -> int:
        layout = self.map["CHIP.IRQ_STATUS"].layout
        return layout.pack(fence=self.command.interrupts.fence, error=self.command.interrupts.error)

    def read(self, address: int) -> int:
        """Value of the register at ``address``; 0 where there is none."""
        placed = self.map.by_address.get(address)
        if placed is None or placed.register.access is Access.WO:
            return 0
        if placed.register.access in (Access.CONST, Access.RW):
            return self.values[address]
        if placed.block.name == "QUEUE":
            return self._read_queue(placed, self.command.queues[placed.index])
        return self._read_chip(placed)

    def write(self, address: int, value: int) -> None:
        """Writes the register at ``address``; read-only ones ignore it."""
        placed = self.map.by_address.get(address)
        if placed is None:
            return
        if placed.register.access is Access.RW:
            self.values[address] = value & placed.layout.mask
        if placed.block.name == "DOORBELL":
            queue = self.command.queues[placed.index]
            queue.doorbell(value & 0xFFFF, self.command.time)
        elif placed.block.name == "QUEUE":
            self._write_queue(placed, self.command.queues[placed.index], value)
        elif placed.block.name == "CONTEXT":
            self.spaces[placed.index].root = self.values[address]
        elif placed.name == "CHIP.INVALIDATE":
            self._invalidate(**placed.layout.unpack(value & placed.layout.mask))
        elif placed.name == "CHIP.IRQ_STATUS":
            self.command.interrupts.clear(**placed.layout.unpack(value))
        elif placed.name == "CHIP.IRQ_ENABLE":
            causes = placed.layout.unpack(value & placed.layout.mask)
            self.command.interrupts.enabled_fence = causes["fence"]
            self.command.interrupts.enabled_error = causes["error"]
        elif placed.name == "CHIP.IRQ_COALESCE":
            limit = placed.layout.unpack(value & placed.layout.mask)
            self.command.interrupts.count, self.command.interrupts.cycles = limit["count"], limit["cycles"]
        elif placed.name == "CHIP.COUNTER_CONTROL":
            for core in self.command.cores:
                core.counts.frozen = bool(placed.layout.unpack(value & placed.layout.mask)["freeze"])
        elif placed.name == "CHIP.CONTROL" and value & 1:
            self.command.reset()
            for index, queue in enumerate(self.command.queues):
                self._write_queue(control := self.map[f"QUEUE{index}.CONTROL"], queue, self.values[control.address])

    def _invalidate(self, context: int, contents: int) -> None:
        self.spaces[context].invalidate()
        if contents:
            for core in self.command.cores:
                if core.owner == context:
                    core.forget()

    def _write_queue(self, placed: PlacedRegister, queue: QueueModel, value: int) -> None:
        name = placed.register.name
        if name != "CONTROL" and queue.state is not QueueState.DISABLED:
            return  # whoever sets up a queue that is on finds nothing changed
        if name == "BASE":
            queue.base = value
        elif name == "SIZE":
            queue.size = value & 0xF
        elif name == "READBACK":
            queue.readback = value
        elif name == "OWNER":
            owner = placed.layout.unpack(value & placed.layout.mask)
            queue.context, queue.priority = owner["context"], owner["priority"]
        elif name == "WATCHDOG":
            queue.watchdog = value
        elif name == "CONTROL":
            control = placed.layout.unpack(value & placed.layout.mask)
            if not control["enable"]:
                queue.stopping = queue.on or queue.state is QueueState.ERROR
            if control["abort"] and queue.on:
                queue.aborting = True
            if queue.stopping and not queue.held:
                queue.disable()
            if control["enable"] and queue.state is QueueState.DISABLED:
                queue.state = QueueState.READY
                queue.aborting = bool(control["abort"])

    def _read_queue(self, placed: PlacedRegister, queue: QueueModel) -> int:
        record = queue.record
        readers: dict[str, Callable[[], int]] = {
            "READ_INDEX": lambda: queue.read,
            "WRITE_INDEX": lambda: queue.write,
            "BUFFER_INDEX": lambda: placed.layout.pack(
                index=queue.buffer.index if queue.buffer else 0, in_buffer=queue.buffer is not None
            ),
            "STATE": lambda: placed.layout.pack(state=queue.state),
            "ERROR": lambda: placed.layout.pack(code=record.code, unit=record.unit, core=record.core),
            "ERROR_PC": lambda: record.pc,
            "ERROR_BLOCK": lambda: record.block,
            "ERROR_ADDRESS": lambda: record.address,
            "DOORBELL_TIME_LO": lambda: queue.doorbell_time & 0xFFFFFFFF,
            "DOORBELL_TIME_HI": lambda: queue.doorbell_time >> 32,
        }
        return readers[placed.register.name]()

    def _read_chip(self, placed: PlacedRegister) -> int:
        name, command = placed.register.name, self.command
        if name == "STATUS":
            return 0
        if name == "IRQ_STATUS":
            return self._irq_status()
        if name == "TIME_LO":
            self.time_latch = command.time
            return command.time & 0xFFFFFFFF
        if name == "TIME_HI":
            return self.time_latch >> 32
        if name == "PROGRESS":
            return command.progress & 0xFFFFFFFF
        selected = self.values[self.map["CHIP.CORE_SELECT"].address]
        if selected >= len(command.cores):
            return 0
        core = command.cores[selected]
        if name == "CORE_PC":
            return placed.layout.pack(pc=core.pc, running=core.block is not None)
        if name == "CORE_UNITS":
            states = {u.name.lower(): core.unit_state(u) for u in (Unit.SEQUENCER, *UNITS)}
            return placed.layout.pack(**states)
        if name == "COUNTER":
            select = self.map["CHIP.COUNTER_SELECT"]
            chosen = select.layout.unpack(self.values[select.address])
            return _counter(core, chosen["group"], chosen["counter"])
        half = core.semaphores[:8] if name == "CORE_SEMAPHORES_LO" else core.semaphores[8:]
        return sum(value << 4 * i for i, value in enumerate(half))


def _counter(core: CoreModel, group: int, counter: int) -> int:
    if group not in CounterGroup._value2member_map_:
        return 0
    return core.counts.values[CounterGroup(group)][counter] & 0xFFFFFFFF
