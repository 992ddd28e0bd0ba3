"""All instances of a design, what drives every wire of them, and their memories."""

from dataclasses import dataclass

from sley.sim.errors import FastError
from sley.sim.fast.read.netlist import Memory
from sley.sim.fast.read.rtlil import CONST, Assign, Cell, Module, Process, Sigspec, Switch, plain

FLIP_FLOPS = ("$dff", "$adff")
EVENTS = ("$print", "$check")


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


class Hierarchy:
    """All instances of a design and what drives every wire."""

    def __init__(self, modules: dict[str, Module], top: str) -> None:
        self.modules = modules
        self.instances: list[Instance] = []
        self.drivers: dict[int, list[Driver]] = {}
        self.flip_flops: list[tuple[Instance, Cell]] = []
        self.events: list[tuple[Instance, Cell]] = []
        self.memories: dict[tuple[int, str], MemoryPorts] = {}
        self.outside: dict[int, tuple[Instance, int]] = {}
        """For an output of an instance that is a whole wire of the instance around it: that instance, and its wire."""
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
            name = path if declaration.name.startswith("$") else f"{path}.{declaration.name}"
            memory = Memory(name, declaration.width, declaration.depth, [])
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
                if len(value) == 1 and value[0][1:] == (0, parent.module.wires[value[0][0]].width):
                    self.outside[child.base + number] = parent, value[0][0]

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
    what = f"a tristate buffer ({what})" if cell.kind == "$tribuf" else what
    return FastError(
        f"{instance.path}{where}: {what} cannot be simulated by this engine; put a model in Amaranth in its place"
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
