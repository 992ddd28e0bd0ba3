"""The values of a netlist and its sinks, and the groups that they are put into."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sley.sim.fast.read.netlist import SOURCES, Netlist, Register

MIN_ELEMENTS = 4
"""Elements of the smallest loop."""

MIN_STRICT = 8
"""Sinks with one set of constants that are a group of their own."""

_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class Group:
    """Values computed alike: the loop computes ``values[i]`` in its step ``slots[i]``."""

    values: tuple[int, ...]
    op: str
    width: int
    slots: tuple[int, ...]
    """From 0 on. Steps that belong to no value compute nothing."""


class Elements:
    """The netlist's needed values, and behind them its sinks as values of their own.

    Their operators are ``next``, ``write``, ``output``, ``event`` and ``reset``.

    ``groups`` partitions them; ``group_of`` and ``position`` say where a value is.
    """

    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self.op = list(netlist.op)
        self.width = list(netlist.width)
        self.operands = list(netlist.operands)
        self.parameter = list(netlist.parameter)
        self.home = list(netlist.home)
        self.groups: list[Group] = []
        self.arrays: list[tuple[int, ...]] = []
        """Registers (their values) whose contents lie side by side in memory; -1 for a free place."""
        self.stored: dict[int, tuple[int, int]] = {}
        """Number of the array and position, for each register in one."""
        self.views: dict[tuple[int, ...], tuple[int, ...]] = {}
        """Words, one for each element of a loop, and the smaller values side by side in memory that they consist of."""
        self.aliases: set[int] = set()
        """Slices of whole bytes, read in place from the stored value that they are part of."""
        self.group_of: dict[int, int] = {}
        self.position: dict[int, int] = {}
        self.first_sink = len(self.op)
        self.marks = netlist.reachable(netlist.sinks())
        self._homes = {path: number for number, path in enumerate(netlist.instances)}
        self._keys: list[object] = []
        self._add_sinks()
        self.shapes = self._find_shapes(strict=False)
        self._strict_shapes = self._find_shapes(strict=True)

    def _add(self, op: str, width: int, operands: tuple[int, ...], parameter: int, home: int, key: object) -> None:
        self.op.append(op)
        self.width.append(width)
        self.operands.append(operands)
        self.parameter.append(parameter)
        self.home.append(home)
        self._keys.append(key)

    def _home_of(self, name: str) -> int:
        return self._homes.get(name.rpartition(".")[0], 0)

    def _add_sinks(self) -> None:
        net = self.netlist
        for number, register in enumerate(net.registers):
            home = self._home_of(register.name)
            key: object = (_DIGITS.sub("#", register.name), register.clock, register.reset >= 0)
            self._add("next", register.width, (register.next,), number, home, key)
            if register.reset >= 0:
                self._add("reset", 1, (register.reset,), number, home, None)
        ports: dict[int, int] = defaultdict(int)
        for number, write in enumerate(net.writes):
            segment = net.segments[write.segment]
            memory = net.memories[segment.memory]
            key = (memory.name, ports[write.segment], write.clock, net.width[write.enable])
            ports[write.segment] += 1
            operands = (write.address, write.data, write.enable)
            self._add("write", segment.width, operands, number, self._home_of(memory.name), key)
        for number, port in enumerate(net.outputs):
            self._add("output", port.width, (port.value,), number, 0, None)
        for number, event in enumerate(net.events):
            tests = (event.test,) if event.test >= 0 else ()
            operands = (event.enable, *tests, *event.arguments)
            self._add("event", 1, operands, number, self._homes.get(event.path, 0), None)

    def _find_shapes(self, strict: bool) -> list[int]:
        """For each value a number that is the same for values computed alike; ``strict``: with the same constants."""
        known: dict[object, int] = {}
        shapes: list[int] = []
        columns = zip(self.op, self.width, self.operands, self.parameter, strict=True)
        for op, width, operands, parameter in columns:
            own = parameter if strict and op in ("const", "slice", "pick") else 0
            key = (op, width, own, *[shapes[operand] for operand in operands])
            shapes.append(known.setdefault(key, len(known)))
        return shapes

    def register(self, sink: int) -> Register:
        """The register whose next value a sink is."""
        return self.netlist.registers[self.parameter[sink]]

    def registers(self, number: int) -> list[Register]:
        """The same for all elements of a group."""
        return [self.register(sink) for sink in self.groups[number].values]

    def source(self, value: int) -> bool:
        """Whether the value is there without being computed."""
        return self.op[value] in SOURCES

    def candidates(self) -> list[tuple[int, ...]]:
        """Sinks that might become the elements of one group, in their order.

        Sinks that differ in constants alone are one group, unless many of them share each set of constants.
        """
        found: dict[object, list[int]] = defaultdict(list)
        for offset, key in enumerate(self._keys):
            if key is not None:
                value = self.first_sink + offset
                found[key, self.shapes[value], self.op[value]].append(value)
        result: list[tuple[int, ...]] = []
        for values in found.values():
            strict: dict[int, list[int]] = defaultdict(list)
            for value in values:
                strict[self._strict_shapes[value]].append(value)
            if min(len(part) for part in strict.values()) >= MIN_STRICT:
                result += [tuple(part) for part in strict.values()]
            else:
                result.append(tuple(values))
        return result

    def place(self, values: Sequence[int], slots: Sequence[int]) -> None:
        """Makes a group of these values."""
        first = values[0]
        number = len(self.groups)
        self.groups.append(Group(tuple(values), self.op[first], self.width[first], tuple(slots)))
        for position, value in enumerate(values):
            self.group_of[value] = number
            self.position[value] = position
