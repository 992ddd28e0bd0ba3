"""Pass 2, flatten: the modules of a design, instanced, as one netlist.

The value of a wire is made when something needs it, from what drives it; what nothing needs is never made. Flip-flops
and memory rows wider than a machine word are cut where the design itself takes them apart (``cuts``), so that the
lanes of a wide word become values of their own.
"""

import sys
from collections.abc import Mapping
from itertools import pairwise

from sley.sim.errors import FastError
from sley.sim.fast.read.cuts import Place, find_cuts
from sley.sim.fast.read.hierarchy import Hierarchy, Instance, MemoryPorts, unsupported
from sley.sim.fast.read.netlist import WORD, Clock, Event, Memory, Netlist, Port, Register, Segment, Write
from sley.sim.fast.read.rtlil import Cell, Module, plain
from sley.sim.fast.read.wires import CombinationalLoopError, Wires

RECURSION = 1_000_000

ReadPort = tuple[MemoryPorts, Instance, Cell, list[Register]]
"""A synchronous read port, and the registers that hold what it read."""


class Flattener(Wires):
    """Makes the netlist: registers and memories first, which the values of wires begin with, then what they become."""

    def __init__(self, hierarchy: Hierarchy, split: set[int], ties: Mapping[str, int]) -> None:
        super().__init__(hierarchy, split, ties)
        self._clocks: dict[tuple[int, bool], int] = {}
        self._flip_flops: list[list[Register]] = []
        self._read_ports: list[ReadPort] = []

    def declare(self, cuts: dict[Place, list[int]]) -> None:
        """Inputs, registers and memories, wide ones cut at these places; every wire then has a value."""
        top, net = self.hierarchy.top, self.netlist
        net.instances = [instance.path for instance in self.hierarchy.instances]
        for number, wire in enumerate(top.module.wires):
            if wire.direction == "input" and wire.name in self._ties:
                self._values[top.base + number] = net.const(self._ties[wire.name], wire.width)
            elif wire.direction == "input":
                value = net.make("input", wire.width, (), len(net.inputs))
                net.inputs.append(Port(wire.name, wire.width, value))
                self._values[top.base + number] = value
        for ports in self.hierarchy.memories.values():
            self._declare_memory(ports, cuts.get(("memory", ports.number), []))
        for instance, cell in self.hierarchy.flip_flops:
            self._flip_flops.append(self._declare(instance, cell, cuts))
        for ports in self.hierarchy.memories.values():
            for instance, cell in ports.reads:
                if cell.parameters["CLK_ENABLE"]:
                    self._read_ports.append(self._declare_read(ports, instance, cell))

    def run(self) -> Netlist:
        """The whole design."""
        top, net = self.hierarchy.top, self.netlist
        self.declare(find_cuts(self.hierarchy))
        for (instance, cell), registers in zip(self.hierarchy.flip_flops, self._flip_flops, strict=True):
            self._connect(instance, cell, registers)
        for ports, instance, cell, registers in self._read_ports:
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

    def _declare(self, instance: Instance, cell: Cell, cuts: dict[Place, list[int]]) -> list[Register]:
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

    def _declare_read(self, ports: MemoryPorts, instance: Instance, cell: Cell) -> ReadPort:
        ((wire, _, width),) = cell.ports["DATA"] or ((0, 0, 0),)
        # The registers of a memory that is a module are called what they are outside of it.
        own = ports.memory.name == instance.path
        outer, outer_wire = (
            self.hierarchy.outside.get(instance.base + wire, (instance, wire)) if own else (instance, wire)
        )
        name = f"{outer.path}.{outer.module.wires[outer_wire].name}"
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
