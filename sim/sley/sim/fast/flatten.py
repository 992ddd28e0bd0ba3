"""Pass 2, flatten: the modules of a design, instanced, as one netlist.

The value of a wire is made when something needs it, from what drives it; what nothing needs is never made. Flip-flops
and memory rows wider than a machine word are cut where the design itself takes them apart (``cuts``), so that the
lanes of a wide word become values of their own.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from sley.sim.fast.cells import BITWISE, build_cell
from sley.sim.fast.cuts import find_cuts
from sley.sim.fast.netlist import WORD, Clock, Event, Memory, Netlist, Port, Register, Segment, Write
from sley.sim.fast.rtlil import CONST, Assign, Case, Cell, FastError, Module, Process, Sigspec, Switch, plain, width_of
from sley.sim.fast.simplify import Builder

FLIP_FLOPS = ("$dff", "$adff")
EVENTS = ("$print", "$check")
RECURSION = 1_000_000


@dataclass(slots=True)
class Instance:
    """One use of a module. Its wires are numbered from ``base`` on, after those of the instances before it."""

    number: int
    path: str
    module: Module
    base: int


@dataclass(slots=True)
class Driver:
    """What drives bits of a wire: exactly one of a value of another instance's wires, a cell or a process."""

    low: int
    width: int
    instance: Instance
    source: Sigspec | Cell | Process
    offset: int = 0
    """Bit of the source that drives the lowest of these bits."""


@dataclass(slots=True)
class MemoryPorts:
    memory: Memory
    number: int
    reads: list[tuple[Instance, Cell]]
    writes: list[tuple[Instance, Cell]]


class CombinationalLoopError(Exception):
    """Wires whose values depend on each other, looked at as a whole; single bits of them might not."""

    def __init__(self, wires: list[int]) -> None:
        super().__init__()
        self.wires = wires


class Hierarchy:
    """All instances of a design and what drives every wire."""

    def __init__(self, modules: dict[str, Module], top: str) -> None:
        self.modules = modules
        self.instances: list[Instance] = []
        self.drivers: dict[int, list[Driver]] = {}
        self.flip_flops: list[tuple[Instance, Cell]] = []
        self.events: list[tuple[Instance, Cell]] = []
        self.memories: dict[tuple[int, str], MemoryPorts] = {}
        self.wires = 0
        self.top = self._add(top, modules[top])

    def _add(self, path: str, module: Module) -> Instance:
        instance = Instance(len(self.instances), path, module, self.wires)
        self.instances.append(instance)
        self.wires += len(module.wires)
        for left, right in module.connections:
            self._drive(instance, left, Driver(0, 0, instance, right))
        for process in module.processes:
            for wire, low, width in _targets(process):
                self._drive(instance, ((wire, low, width),), Driver(0, 0, instance, process, low))
        for declaration in module.memories.values():
            memory = Memory(f"{path}.{declaration.name}", declaration.width, declaration.depth, [])
            key = (instance.base, declaration.name)
            self.memories[key] = MemoryPorts(memory, len(self.memories), [], [])
        for cell in module.cells:
            self._add_cell(instance, cell)
        return instance

    def _add_cell(self, instance: Instance, cell: Cell) -> None:
        kind = cell.kind
        if kind in self.modules:
            self._add_instance(instance, cell, self.modules[kind])
        elif kind in FLIP_FLOPS:
            self.flip_flops.append((instance, cell))
        elif kind in EVENTS:
            self.events.append((instance, cell))
        elif kind.startswith("$mem"):
            ports = self.memories[instance.base, plain(str(cell.parameters["MEMID"]))]
            if kind == "$meminit_v2":
                ports.memory.init = _rows(cell, ports.memory.width)
            elif kind == "$memwr_v2":
                ports.writes.append((instance, cell))
            elif kind == "$memrd_v2":
                ports.reads.append((instance, cell))
                self._drive(instance, cell.ports["DATA"], Driver(0, 0, instance, cell))
            else:
                raise unsupported(instance, cell)
        elif "Y" in cell.ports:
            self._drive(instance, cell.ports["Y"], Driver(0, 0, instance, cell))
        else:
            raise unsupported(instance, cell)

    def _add_instance(self, parent: Instance, cell: Cell, module: Module) -> None:
        child = self._add(f"{parent.path}.{cell.name}", module)
        for port, value in cell.ports.items():
            number = module.index.get(f"\\{port}")
            if number is None:
                raise FastError(f"{child.path} has no port {port} [{cell.source}]")
            wire = module.wires[number]
            inner: Sigspec = ((number, 0, wire.width),)
            if wire.direction == "input":
                self._drive(child, inner, Driver(0, 0, parent, value))
            else:
                self._drive(parent, value, Driver(0, 0, child, inner))

    def _drive(self, instance: Instance, target: Sigspec, driver: Driver) -> None:
        offset = driver.offset
        for wire, low, width in target:
            if wire != CONST:
                piece = Driver(low, width, driver.instance, driver.source, offset)
                self.drivers.setdefault(instance.base + wire, []).append(piece)
            offset += width

    def instance_of(self, wire: int) -> Instance:
        low, high = 0, len(self.instances)
        while high - low > 1:
            middle = (low + high) // 2
            if self.instances[middle].base <= wire:
                low = middle
            else:
                high = middle
        return self.instances[low]

    def describe(self, wire: int) -> str:
        """Path and source location of a wire."""
        instance = self.instance_of(wire)
        own = instance.module.wires[wire - instance.base]
        return f"{instance.path}.{own.name}" + (f" [{own.source}]" if own.source else "")


def unsupported(instance: Instance, cell: Cell) -> FastError:
    where = f" [{cell.source}]" if cell.source else ""
    what = f"an instance of {cell.kind}, of which there is no description" if cell.kind[0] != "$" else cell.kind
    return FastError(
        f"{instance.path}{where}: {what} cannot be simulated by this engine; use pysim, or leave it out of the design"
    )


def _targets(process: Process) -> set[tuple[int, int, int]]:
    """Bits of wires that a process assigns: for each wire one piece from the first bit to the last."""
    extent: dict[int, tuple[int, int]] = {}

    def visit(body: list[Assign | Switch]) -> None:
        for statement in body:
            if isinstance(statement, Assign):
                for wire, low, width in statement.target:
                    start, end = extent.get(wire, (low, low + width))
                    extent[wire] = (min(start, low), max(end, low + width))
            else:
                for case in statement.cases:
                    visit(case.body)

    visit(process.body)
    return {(wire, start, end - start) for wire, (start, end) in extent.items()}


def _rows(cell: Cell, width: int) -> list[int]:
    """Rows of a memory's initial contents up to the last one that is not zero."""
    value, position = 0, 0
    for wire, number, size in cell.ports.get("DATA", ()):
        if wire != CONST:
            raise FastError(f"a memory is initialised with something that is not constant [{cell.source}]")
        value |= number << position
        position += size
    if not value or not width:
        return []
    count = -(-value.bit_length() // width)
    step = -(-width // 8)
    if width % 8 == 0:
        raw = value.to_bytes(count * step, "little")
        return [int.from_bytes(raw[row * step : (row + 1) * step], "little") for row in range(count)]
    bits = f"{value:0{count * width}b}"
    end = len(bits)
    return [int(bits[end - (row + 1) * width : end - row * width], 2) for row in range(count)]


class Flattener:
    """Makes the netlist. ``split``: wires whose bits are made one by one."""

    def __init__(self, hierarchy: Hierarchy, split: set[int], ties: Mapping[str, int]) -> None:
        self.netlist = Builder()
        self.hierarchy = hierarchy
        self._split = split
        self._ties = ties
        self._values: dict[int, int] = {}
        self._bits: dict[tuple[int, int], int] = {}
        self._pieces: dict[tuple[int, int, int], int] = {}
        self._busy: dict[object, int] = {}
        self._clocks: dict[tuple[int, bool], int] = {}
        self._reads: dict[int, int] = {}
        self._segments: dict[int, list[int]] = {}

    def run(self) -> Netlist:
        top, net = self.hierarchy.top, self.netlist
        net.instances = [instance.path for instance in self.hierarchy.instances]
        cuts = find_cuts(self.hierarchy)
        for number, wire in enumerate(top.module.wires):
            if wire.direction == "input" and wire.name in self._ties:
                self._values[top.base + number] = net.const(self._ties[wire.name], wire.width)
            elif wire.direction == "input":
                value = net.make("input", wire.width, (), len(net.inputs))
                net.inputs.append(Port(wire.name, wire.width, value))
                self._values[top.base + number] = value
        for ports in self.hierarchy.memories.values():
            self._declare_memory(ports, cuts.get(("memory", ports.number), []))
        flip_flops = [self._declare(instance, cell, cuts) for instance, cell in self.hierarchy.flip_flops]
        reads = [
            self._declare_read(ports, instance, cell)
            for ports in self.hierarchy.memories.values()
            for instance, cell in ports.reads
            if cell.parameters["CLK_ENABLE"]
        ]
        for (instance, cell), registers in zip(self.hierarchy.flip_flops, flip_flops, strict=True):
            self._connect(instance, cell, registers)
        for ports, instance, cell, registers in reads:
            self._connect_read(ports, instance, cell, registers)
        for ports in self.hierarchy.memories.values():
            for instance, cell in ports.writes:
                self._connect_write(ports, instance, cell)
        for instance, cell in self.hierarchy.events:
            self._connect_event(instance, cell)
        net.instance = top.number
        for number, wire in enumerate(top.module.wires):
            if wire.direction == "output":
                net.outputs.append(Port(wire.name, wire.width, self.wire(top.base + number)))
        return net

    # Values of wires.

    def value(self, instance: Instance, spec: Sigspec) -> int:
        base = instance.base
        if len(spec) == 1:
            wire, low, width = spec[0]
            return self.netlist.const(low, width) if wire == CONST else self._part(base + wire, low, width)
        parts = [
            self.netlist.const(low, width) if wire == CONST else self._part(base + wire, low, width)
            for wire, low, width in spec
        ]
        return self.netlist.concat(parts)

    def _part(self, wire: int, low: int, width: int) -> int:
        if wire not in self._values and (wire in self._split or wire in self._busy):
            return self.netlist.concat([self._bit(wire, bit) for bit in range(low, low + width)])
        return self.netlist.slice(self.wire(wire), low, width)

    def wire(self, wire: int) -> int:
        known = self._values.get(wire)
        if known is not None:
            return known
        if wire in self._split:
            instance = self.hierarchy.instance_of(wire)
            result = self._part(wire, 0, instance.module.wires[wire - instance.base].width)
        else:
            self._enter(wire, wire)
            drivers = self._drivers(wire)
            result = self.netlist.concat([self._driven(wire, driver, driver.low, driver.width) for driver in drivers])
            del self._busy[wire]
        self._values[wire] = result
        return result

    def _bit(self, wire: int, bit: int) -> int:
        known = self._values.get(wire)
        if known is not None:
            return self.netlist.slice(known, bit, 1)
        key = (wire, bit)
        known = self._bits.get(key)
        if known is None:
            self._enter(key, wire)
            for driver in self._drivers(wire):
                if driver.low <= bit < driver.low + driver.width:
                    known = self._bits[key] = self._driven(wire, driver, bit, 1)
            del self._busy[key]
        assert known is not None
        return known

    def _enter(self, key: object, wire: int) -> None:
        if key in self._busy:
            keys = list(self._busy)
            loop = [self._busy[other] for other in keys[keys.index(key) :]]
            raise CombinationalLoopError(loop)
        self._busy[key] = wire

    def _drivers(self, wire: int) -> list[Driver]:
        """Drivers of all bits of a wire, in order."""
        drivers = sorted(self.hierarchy.drivers.get(wire, ()), key=lambda driver: driver.low)
        position = 0
        for driver in drivers:
            if driver.low != position:
                break
            position += driver.width
        instance = self.hierarchy.instance_of(wire)
        if position != instance.module.wires[wire - instance.base].width:
            what = "has several drivers" if any(driver.low < position for driver in drivers[1:]) else "has no driver"
            raise FastError(f"bit {position} of {self.hierarchy.describe(wire)} {what}")
        return drivers

    def _driven(self, wire: int, driver: Driver, low: int, width: int) -> int:
        """Value of bits of a wire that this driver drives."""
        outside, self.netlist.instance = self.netlist.instance, driver.instance.number
        result = self._made(wire, driver, low, width)
        self.netlist.instance = outside
        return result

    def _made(self, wire: int, driver: Driver, low: int, width: int) -> int:
        offset = driver.offset + low - driver.low
        source = driver.source
        if isinstance(source, tuple):
            return self.value(driver.instance, _sub(source, offset, width))
        if isinstance(source, Process):
            return self._process(driver.instance, source, wire - driver.instance.base, low, width)
        if source.kind == "$memrd_v2":
            return self.netlist.slice(self._read(driver.instance, source), offset, width)
        if width < driver.width and source.kind in BITWISE:
            operands = [
                self.value(driver.instance, _sub(_extended(source, port), offset, width))
                for port in BITWISE[source.kind]
            ]
            select = [self.value(driver.instance, source.ports["S"])] if source.kind == "$mux" else []
            result = build_cell(self.netlist, source.kind, select + operands, {}, width)
            assert result is not None
            return result
        return self.netlist.slice(self._cell(driver.instance, source), offset, width)

    def _cell(self, instance: Instance, cell: Cell) -> int:
        key = (instance.base, id(cell), 0)
        known = self._pieces.get(key)
        if known is None:
            ports = [self.value(instance, cell.ports[port]) for port in ("S", "A", "B") if port in cell.ports]
            result = build_cell(self.netlist, cell.kind, ports, cell.parameters, width_of(cell.ports["Y"]))
            if result is None:
                raise unsupported(instance, cell)
            known = self._pieces[key] = result
        return known

    def _process(self, instance: Instance, process: Process, wire: int, low: int, width: int) -> int:
        """Value of bits of a wire that a process assigns, cut where its assignments cut them."""
        edges = {low, low + width}
        for target in _assigned(process, wire):
            edges.update(edge for edge in target if low < edge < low + width)
        ordered = sorted(edges)
        return self.netlist.concat(
            self._assigned_value(instance, process, wire, start, end - start) for start, end in pairwise(ordered)
        )

    def _assigned_value(self, instance: Instance, process: Process, wire: int, low: int, width: int) -> int:
        result = self._run(instance, process.body, wire, low, width, None)
        if result is None:
            raise FastError(f"{self.hierarchy.describe(instance.base + wire)} keeps its value like a latch")
        return result

    def _run(
        self, instance: Instance, body: list[Assign | Switch], wire: int, low: int, width: int, value: int | None
    ) -> int | None:
        """The value of these bits after the statements, when it was ``value`` before."""
        for statement in body:
            if isinstance(statement, Assign):
                offset = 0
                for target, start, size in statement.target:
                    if target == wire and start <= low and low + width <= start + size:
                        value = self.value(instance, _sub(statement.value, offset + low - start, width))
                    offset += size
            elif _touches(statement, wire, low, width):
                value = self._switch(instance, statement, wire, low, width, value)
        return value

    def _switch(
        self, instance: Instance, switch: Switch, wire: int, low: int, width: int, value: int | None
    ) -> int | None:
        net = self.netlist
        test = self.value(instance, switch.test)
        branches: list[tuple[int, int | None]] = []
        otherwise = value
        for case in switch.cases:
            if not case.patterns:
                otherwise = self._run(instance, case.body, wire, low, width, value)
                break
            condition = self._matches(test, case)
            if net.constant(condition) == 0:
                continue
            branches.append((condition, self._run(instance, case.body, wire, low, width, value)))
            if net.constant(condition) == 1:
                break
        result = otherwise
        for condition, branch in reversed(branches):
            if net.constant(condition) == 1:
                result = branch
            elif branch is None or result is None:
                result = branch = None
            else:
                result = net.mux(condition, result, branch)
        return result

    def _matches(self, test: int, case: Case) -> int:
        net = self.netlist
        result = net.const(0, 1)
        for pattern in case.patterns:
            match = net.const(1, 1)
            for low, bits in _runs(pattern):
                piece = net.slice(test, low, len(bits))
                match = net.bitwise("and", match, net.compare("eq", piece, net.const(int(bits, 2), len(bits))))
            result = net.bitwise("or", result, match)
        return result

    # Registers and memories.

    def _clock(self, instance: Instance, cell: Cell, port: str, polarity: str) -> int:
        """Number of a clock; -1 for one that is constant."""
        net = self.netlist
        value = self.value(instance, cell.ports[port])
        if net.op[value] == "const":
            return -1
        if net.op[value] != "input":
            where = f" [{cell.source}]" if cell.source else ""
            raise FastError(
                f"{instance.path}{where}: a clock that the design makes itself is not supported; "
                "clock the domain from an input of the top module"
            )
        key = (net.parameter[value], bool(cell.parameters[polarity]))
        if key not in self._clocks:
            self._clocks[key] = len(net.clocks)
            net.clocks.append(Clock(net.inputs[key[0]].name, key[1]))
        return self._clocks[key]

    def _declare(self, instance: Instance, cell: Cell, cuts: dict[tuple[str, int], list[int]]) -> list[Register]:
        registers: list[Register] = []
        for wire, low, width in cell.ports["Q"]:
            own, number = instance.module.wires[wire], instance.base + wire
            name, edges = f"{instance.path}.{own.name}", cuts.get(("wire", number), [])
            source = own.source or cell.source
            pieces = self._make_registers(name, low, width, edges, own.init, source)
            registers += pieces
            if width == own.width:
                self._values[number] = self.netlist.concat(register.value for register in pieces)
            else:
                raise unsupported(instance, cell)
        return registers

    def _make_registers(
        self, name: str, low: int, width: int, edges: list[int], init: int, source: str
    ) -> list[Register]:
        net = self.netlist
        result = []
        for start, size in _cut_at(width, edges):
            value = net.make("register", size, (), len(net.registers))
            start += low
            part = init >> start & ((1 << size) - 1)
            register = Register(name, start, size, part, -1, value, source=source)
            net.registers.append(register)
            result.append(register)
        return result

    def _connect(self, instance: Instance, cell: Cell, registers: list[Register]) -> None:
        self.netlist.instance = instance.number
        clock = self._clock(instance, cell, "CLK", "CLK_POLARITY")
        data = self.value(instance, cell.ports["D"])
        reset = -1
        if cell.kind == "$adff":
            reset = self.value(instance, cell.ports["ARST"])
            reset = reset if cell.parameters["ARST_POLARITY"] else self.netlist.not_(reset)
            if self.netlist.constant(reset) == 0:
                reset = -1
        position = 0
        for register in registers:
            register.clock, register.reset = clock, reset
            register.next = self.netlist.slice(data, position, register.width)
            if reset >= 0:
                init = self.netlist.const(register.init, register.width)
                register.next = self.netlist.mux(reset, register.next, init)
            position += register.width

    def _declare_memory(self, ports: MemoryPorts, edges: list[int]) -> None:
        net, memory = self.netlist, ports.memory
        net.memories.append(memory)
        memory.segments.clear()
        for low, width in _cut_at(memory.width, edges):
            memory.segments.append(len(net.segments))
            net.segments.append(Segment(ports.number, low, width))

    def _row(self, memory: Memory, address: int) -> int:
        net = self.netlist
        return net.concat(
            net.make("read", net.segments[segment].width, (address,), segment) for segment in memory.segments
        )

    def _read(self, instance: Instance, cell: Cell) -> int:
        """Value of an asynchronous read port."""
        key = id(cell), instance.base, 1
        known = self._pieces.get(key)
        if known is None:
            ports = self.hierarchy.memories[instance.base, plain(str(cell.parameters["MEMID"]))]
            known = self._pieces[key] = self._row(ports.memory, self.value(instance, cell.ports["ADDR"]))
        return known

    def _declare_read(
        self, ports: MemoryPorts, instance: Instance, cell: Cell
    ) -> tuple[MemoryPorts, Instance, Cell, list[Register]]:
        ((wire, _, width),) = cell.ports["DATA"] or ((0, 0, 0),)
        name = f"{instance.path}.{instance.module.wires[wire].name}"
        edges = [self.netlist.segments[segment].low for segment in ports.memory.segments]
        registers = self._make_registers(name, 0, width, edges, 0, cell.source)
        if width:
            self._values[instance.base + wire] = self.netlist.concat(register.value for register in registers)
        return ports, instance, cell, registers

    def _connect_read(self, ports: MemoryPorts, instance: Instance, cell: Cell, registers: list[Register]) -> None:
        """A synchronous read port: a register behind an asynchronous one, which sees chosen writes of its cycle."""
        self.netlist.instance = instance.number
        net = self.netlist
        clock = self._clock(instance, cell, "CLK", "CLK_POLARITY")
        enable = self.value(instance, cell.ports["EN"])
        address = self.value(instance, cell.ports["ADDR"])
        row = self._row(ports.memory, address)
        transparent = cell.parameters["TRANSPARENCY_MASK"]
        for writer, write in ports.writes:
            if int(transparent) >> int(write.parameters["PORTID"]) & 1:
                same = self._same(address, self.value(writer, write.ports["ADDR"]))
                bits = self.value(writer, write.ports["EN"])
                data = self.value(writer, write.ports["DATA"])
                row = net.mux(same, row, self._merge(row, data, bits))
        position = 0
        for register in registers:
            register.clock = clock
            piece = net.slice(row, position, register.width)
            register.next = net.mux(enable, register.value, piece)
            position += register.width

    def _same(self, a: int, b: int) -> int:
        net = self.netlist
        width = max(net.width[a], net.width[b])
        return net.compare("eq", net.extend(a, width, False), net.extend(b, width, False))

    def _merge(self, old: int, new: int, enable: int) -> int:
        net = self.netlist
        pieces = []
        for low, width, bit in self._enables(enable):
            pieces.append(net.mux(bit, net.slice(old, low, width), net.slice(new, low, width)))
        return net.concat(pieces)

    def _enables(self, enable: int) -> list[tuple[int, int, int]]:
        """Runs of bits with one common enable: position, width, enable."""
        net = self.netlist
        runs: list[tuple[int, int, int]] = []
        position = 0
        for part in net.operands[enable] if net.op[enable] == "concat" else (enable,):
            width = net.width[part]
            if net.op[part] == "sext" and net.width[net.operands[part][0]] == 1:
                runs.append((position, width, net.operands[part][0]))
            else:
                for bit in range(width):
                    runs.append((position + bit, 1, net.slice(part, bit, 1)))
            position += width
        joined: list[tuple[int, int, int]] = []
        for low, width, bit in runs:
            if joined and joined[-1][2] == bit:
                joined[-1] = (joined[-1][0], joined[-1][1] + width, bit)
            else:
                joined.append((low, width, bit))
        return joined

    def _connect_write(self, ports: MemoryPorts, instance: Instance, cell: Cell) -> None:
        self.netlist.instance = instance.number
        net = self.netlist
        clock = self._clock(instance, cell, "CLK", "CLK_POLARITY")
        address = self.value(instance, cell.ports["ADDR"])
        data = self.value(instance, cell.ports["DATA"])
        runs = self._enables(self.value(instance, cell.ports["EN"]))
        for segment in ports.memory.segments:
            low, width = net.segments[segment].low, net.segments[segment].width
            inside = [(start, size, bit) for start, size, bit in runs if start < low + width and low < start + size]
            if len(inside) == 1:
                enable = inside[0][2]
            else:
                enable = net.concat(
                    net.repeat(bit, min(start + size, low + width) - max(start, low)) for start, size, bit in inside
                )
            if net.constant(enable) != 0:
                piece = net.slice(data, low, width)
                net.writes.append(Write(segment, clock, address, piece, enable))

    def _connect_event(self, instance: Instance, cell: Cell) -> None:
        self.netlist.instance = instance.number
        net = self.netlist
        kind = str(cell.parameters.get("FLAVOR", "print"))
        clock = -1
        if cell.parameters["TRG_ENABLE"]:
            clock = self._clock(instance, cell, "TRG", "TRG_POLARITY")
            if clock < 0:
                return  # a clock that never ticks
        if kind not in ("print", "assert", "assume", "cover"):
            raise unsupported(instance, cell)
        arguments = self.value(instance, cell.ports["ARGS"])
        pieces = [
            net.slice(arguments, low, min(WORD, net.width[arguments] - low))
            for low in range(0, net.width[arguments], WORD)
        ]
        test = self.value(instance, cell.ports["A"]) if "A" in cell.ports else -1
        enable = self.value(instance, cell.ports["EN"])
        text = str(cell.parameters["FORMAT"])
        net.events.append(Event(kind, clock, enable, test, text, pieces, instance.path, cell.source))


def _assigned(process: Process, wire: int) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()

    def visit(body: list[Assign | Switch]) -> None:
        for statement in body:
            if isinstance(statement, Assign):
                found.update((low, low + width) for target, low, width in statement.target if target == wire)
            else:
                for case in statement.cases:
                    visit(case.body)

    visit(process.body)
    return found


def _touches(switch: Switch, wire: int, low: int, width: int) -> bool:
    for case in switch.cases:
        for statement in case.body:
            if isinstance(statement, Switch):
                if _touches(statement, wire, low, width):
                    return True
            elif any(
                target == wire and start < low + width and low < start + size
                for target, start, size in statement.target
            ):
                return True
    return False


def _runs(pattern: str) -> list[tuple[int, str]]:
    """Stretches of a pattern that are not don't-care: position of the lowest bit, bits."""
    result: list[tuple[int, str]] = []
    end = len(pattern)
    position = 0
    while position < end:
        if pattern[position] == "-":
            position += 1
            continue
        start = position
        while position < end and pattern[position] != "-":
            position += 1
        result.append((end - position, pattern[start:position]))
    return result


def _sub(spec: Sigspec, low: int, width: int) -> Sigspec:
    """Bits of a value given as chunks."""
    result = []
    for wire, start, size in spec:
        if low < size and width:
            count = min(size - low, width)
            if wire == CONST:
                result.append((CONST, start >> low & ((1 << count) - 1), count))
            else:
                result.append((wire, start + low, count))
            low, width = 0, width - count
        else:
            low -= size
        if not width:
            break
    return tuple(result)


def _extended(cell: Cell, port: str) -> Sigspec:
    """An operand of a bitwise cell with as many bits as its result."""
    spec = cell.ports[port]
    missing = width_of(cell.ports["Y"]) - width_of(spec)
    if missing <= 0:
        return spec
    if cell.parameters.get("A_SIGNED") and spec:
        wire, start, size = spec[-1]
        top = (wire, start >> (size - 1) & 1 if wire == CONST else start + size - 1, 1)
        return spec + (top,) * missing
    return (*spec, (CONST, 0, missing))


def _cut_at(width: int, edges: list[int]) -> list[tuple[int, int]]:
    """A number of bits as pieces (position, width) of at most a word, cut at these positions if it is wider."""
    if width <= WORD:
        return [(0, width)] if width else []
    ordered = sorted({0, width, *(edge for edge in edges if 0 < edge < width)})
    return [(low, min(WORD, end - low)) for start, end in pairwise(ordered) for low in range(start, end, WORD)]


def flatten(modules: dict[str, Module], top: str, ties: Mapping[str, int] | None = None) -> Netlist:
    """The design below module ``top``. ``ties``: inputs that are constant, and no inputs then.

    Raises ``FastError`` with the source location of what is not supported.
    """
    hierarchy = Hierarchy(modules, top)
    split: set[int] = set()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        while True:
            try:
                return Flattener(hierarchy, split, ties or {}).run()
            except CombinationalLoopError as loop:
                new = set(loop.wires) - split
                if not new:
                    names = ", ".join(hierarchy.describe(wire) for wire in dict.fromkeys(loop.wires))
                    raise FastError(f"a combinational loop through {names}") from None
                split |= new
    finally:
        sys.setrecursionlimit(limit)


def declared(hierarchy: Hierarchy, split: set[int], ties: Mapping[str, int]) -> Flattener:
    """A flattener that knows inputs, registers and memories and no more: ``wire`` then makes the value of any wire."""
    made = Flattener(hierarchy, split, ties)
    net, top = made.netlist, hierarchy.top
    for number, wire in enumerate(top.module.wires):
        if wire.direction == "input" and wire.name in ties:
            made._values[top.base + number] = net.const(ties[wire.name], wire.width)
        elif wire.direction == "input":
            value = net.make("input", wire.width, (), len(net.inputs))
            net.inputs.append(Port(wire.name, wire.width, value))
            made._values[top.base + number] = value
    for ports in hierarchy.memories.values():
        made._declare_memory(ports, [])
        for instance, cell in ports.reads:
            if cell.parameters["CLK_ENABLE"]:
                made._declare_read(ports, instance, cell)
    for instance, cell in hierarchy.flip_flops:
        made._declare(instance, cell, {})
    return made
