"""The state of a device for a person, or a program, to read: registers, rings, units, contexts, counters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass

from sley.abi.faults import QueueState, Unit, UnitState
from sley.abi.layout import Field
from sley.abi.registers import Access
from sley.driver.context import Context
from sley.driver.hardware.hardware import Hardware
from sley.driver.hardware.registers import Registers
from sley.driver.hardware.statistics import Statistics
from sley.driver.memory.physical import PhysicalMemory
from sley.driver.memory.ranges import MemoryStatistics
from sley.driver.observe.counters import Counters, Values, read_counters
from sley.driver.queue.packets import describe_packet
from sley.driver.queue.queue import Queue


@dataclass(frozen=True)
class CoreState:
    """One core: instruction index, whether a block runs, what each unit does, semaphores above zero."""

    number: int
    pc: int
    running: bool
    units: dict[Unit, UnitState]
    semaphores: dict[int, int]

    def __str__(self) -> str:
        units = ", ".join(f"{unit.name.lower()} {state.name}" for unit, state in self.units.items())
        raised = ", ".join(f"{i}={value}" for i, value in self.semaphores.items()) or "all zero"
        what = f"at instruction {self.pc}" if self.running else "no block"
        return f"core {self.number}: {what}; {units}; semaphores {raised}"


@dataclass(frozen=True)
class QueueDump:
    """One queue: whose it is, state, device indices, text of the packets between them."""

    number: int
    context: int
    state: QueueState
    read_index: int
    write_index: int
    packets: tuple[str, ...]

    def __str__(self) -> str:
        head = f"queue {self.number} of context {self.context}: {self.state.name}"
        head += f", read index {self.read_index}, write index {self.write_index}"
        return "\n".join([head, *(f"  {'>' if i == 0 else ' '} {text}" for i, text in enumerate(self.packets))])


@dataclass(frozen=True)
class ContextDump:
    """One context: its mappings as text, actions that wait for work in flight, its last errors."""

    number: int
    mappings: tuple[str, ...]
    deferred: int
    errors: tuple[str, ...]

    def __str__(self) -> str:
        head = f"context {self.number}: {len(self.mappings)} mappings, {self.deferred} actions deferred"
        return "\n  ".join([head, *self.mappings, *self.errors])


@dataclass(frozen=True)
class Dump:
    """Everything the registers and rings show at one time."""

    registers: dict[str, str]
    queues: tuple[QueueDump, ...]
    contexts: tuple[ContextDump, ...]
    cores: tuple[CoreState, ...]
    memory: MemoryStatistics
    statistics: Statistics
    counters: Counters

    def summary(self) -> str:
        """One line: who is stuck, and on what."""
        parts = [str(core) for core in self.cores if core.running]
        for queue in self.queues:
            if queue.packets:
                parts.append(f"queue {queue.number} {queue.state.name} at {queue.packets[0]}")
        return "; ".join(parts) or "no block runs and no queue has work"

    def __str__(self) -> str:
        width = max(map(len, self.registers))
        lines = [f"{name:<{width}}  {value}" for name, value in self.registers.items()]
        lines += ["[queues]", *map(str, self.queues), "[contexts]", *map(str, self.contexts)]
        lines += ["[cores]", *map(str, self.cores), "[memory]", str(self.memory), "[events]", str(self.statistics)]
        return "\n".join(["[registers]", *lines, "[counters]", *self._counters()])

    def json(self) -> str:
        """The same for programs."""
        return json.dumps(
            {
                "registers": self.registers,
                "queues": [{**asdict(queue), "state": queue.state.name} for queue in self.queues],
                "contexts": [asdict(context) for context in self.contexts],
                "cores": [
                    {**asdict(core), "units": {unit.name.lower(): state.name for unit, state in core.units.items()}}
                    for core in self.cores
                ],
                "memory": asdict(self.memory),
                "events": vars(self.statistics),
                "counters": {place: _names(values) for place, values in self._places()},
            },
            indent=1,
        )

    def _places(self) -> list[tuple[str, Values]]:
        places = [(f"core {number}", values) for number, values in enumerate(self.counters.cores)]
        return [*places, ("memory bus", self.counters.chip)]

    def _counters(self) -> Iterator[str]:
        """A line for each group, of the counters above zero."""
        for place, values in self._places():
            for group, counts in values.items():
                shown = ", ".join(f"{counter.name} {value}" for counter, value in counts.items() if value)
                yield f"{place} {group.name.lower()}: {shown or 'all zero'}"


def _names(values: Values) -> dict[str, dict[str, int]]:
    return {
        group.name.lower(): {counter.name.lower(): value for counter, value in counts.items()}
        for group, counts in values.items()
    }


def capture(hardware: Hardware, memory: PhysicalMemory, contexts: Mapping[int, Context]) -> Dump:
    """Reads everything without changing what the device does. ``contexts``: all of the device, by number."""
    queues = sorted((queue for context in contexts.values() for queue in context.queues), key=lambda queue: queue.index)
    return Dump(
        _registers(hardware.registers),
        tuple(map(_queue, queues)),
        tuple(_context(context) for _, context in sorted(contexts.items())),
        tuple(_core(hardware.registers, number) for number in range(hardware.config.cores)),
        memory.pages.statistics(),
        deepcopy(hardware.statistics),
        read_counters(hardware.registers, hardware.config),
    )


def _registers(registers: Registers) -> dict[str, str]:
    return {
        placed.name: ", ".join(
            f"{name}={_show(placed.layout.fields[name].field, value)}"
            for name, value in registers.read(placed.name).items()
        )
        for placed in registers.map
        if placed.register.access is not Access.WO and not placed.register.name.startswith(("CORE_", "COUNTER"))
    }


def _show(field: Field, value: int) -> str:
    if field.enum is not None and value in field.enum._value2member_map_:
        return field.enum(value).name
    return f"{value:#x}" if field.width > 8 else str(value)


def _queue(queue: Queue) -> QueueDump:
    read, write = queue.control.value("READ_INDEX"), queue.control.value("WRITE_INDEX")
    waiting = min((write - read) % (2 * queue.length), queue.length)
    packets = tuple(describe_packet(packet) for packet in queue.packets(read, waiting))
    return QueueDump(queue.index, queue.context.number, queue.state, read, write, packets)


def _context(context: Context) -> ContextDump:
    mappings = tuple(map(repr, context.space.mappings))
    return ContextDump(context.number, mappings, context.deferred, tuple(map(str, context.events)))


def _core(registers: Registers, number: int) -> CoreState:
    registers.write("CHIP.CORE_SELECT", core=number)
    pc = registers.read("CHIP.CORE_PC")
    units = registers.read("CHIP.CORE_UNITS")
    low, high = registers.value("CHIP.CORE_SEMAPHORES_LO"), registers.value("CHIP.CORE_SEMAPHORES_HI")
    values = {i: (high << 32 | low) >> 4 * i & 15 for i in range(16)}
    return CoreState(
        number,
        pc["pc"],
        bool(pc["running"]),
        {unit: UnitState(units[unit.name.lower()]) for unit in Unit if unit is not Unit.COMMAND},
        {i: value for i, value in values.items() if value},
    )
