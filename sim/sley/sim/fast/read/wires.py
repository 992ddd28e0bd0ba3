"""Values of wires, made when they are asked for, from what drives them."""

from collections.abc import Mapping
from itertools import pairwise

from sley.sim.errors import FastError
from sley.sim.fast.read.cells import BITWISE, build_cell
from sley.sim.fast.read.hierarchy import Driver, Hierarchy, Instance, unsupported
from sley.sim.fast.read.rtlil import CONST, Assign, Case, Cell, Process, Sigspec, Switch, width_of
from sley.sim.fast.read.simplify import Builder


class CombinationalLoopError(Exception):
    """Wires whose values depend on each other, looked at as a whole; single bits of them might not."""

    def __init__(self, wires: list[int]) -> None:
        super().__init__()
        self.wires = wires


class Wires:
    """The values of a design's wires in a netlist that grows with them.

    ``split``: wires whose bits are made one by one. ``ties``: values of inputs that are constant. Registers and
    memories are a subclass's.
    """

    def __init__(self, hierarchy: Hierarchy, split: set[int], ties: Mapping[str, int]) -> None:
        self.netlist = Builder()
        self.hierarchy = hierarchy
        self._split = split
        self._ties = ties
        self._values: dict[int, int] = {}
        self._bits: dict[tuple[int, int], int] = {}
        self._pieces: dict[tuple[int, int, int], int] = {}
        self._busy: dict[object, int] = {}

    def _read(self, instance: Instance, cell: Cell) -> int:
        """Value of an asynchronous read port of a memory."""
        raise NotImplementedError

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
        if switch.exclusive:  # else each bit of a signal that is indexed would wait for the cases of all others
            branches = [(condition, branch) for condition, branch in branches if branch != otherwise]
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
