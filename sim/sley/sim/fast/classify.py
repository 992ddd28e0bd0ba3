"""Pass 4, classify: values that do the same for many elements become groups, and a group becomes one loop.

The start are *sinks*: registers and memory segments whose signals have one name but for the digits in it, and whose
next values are computed alike (the same operators in the same order, down to whatever registers they begin with). Such
sinks are the elements of a group. From there the grouping goes down: operand k of all elements is a group again. It
ends at registers, inputs, constants, at values that all elements share, and at values that are in a group already.
What no group takes is a group of one element, which becomes scalar code.

The method is that of superword-level parallelism (Larsen and Amarasinghe, PLDI 2000), on a netlist.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sley.sim.fast.lattice import place_registers
from sley.sim.fast.layout import SIZES, c_type
from sley.sim.fast.netlist import SOURCES, WORD, Netlist, Register

MIN_ELEMENTS = 4
MIN_STRICT = 8
SPARSE = 2
"""A loop may have so many times more steps than elements."""
BYTES = (8, 16, 32, 64)
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


class Classifier:
    def __init__(self, elements: Elements) -> None:
        self._elements = elements

    def run(self) -> None:
        elements = self._elements
        candidates = elements.candidates()
        loops = [sinks for sinks in candidates if len(sinks) >= MIN_ELEMENTS]
        place_registers(elements, [sinks for sinks in loops if elements.op[sinks[0]] == "next"])
        loops = [part for sinks in loops for piece in self._together(sinks) for part in self._split(piece)]
        for sinks in sorted(loops, key=len, reverse=True):
            if len(sinks) >= MIN_ELEMENTS:
                self._grow(sinks)
        for parts in self._reductions():
            if all(part not in elements.group_of for part in parts):
                self._grow(parts)
        self._place_rest()

    def _place_rest(self) -> None:
        """Makes a group of one of every value that is needed and in no group yet."""
        elements = self._elements
        needed = bytearray(len(elements.op))
        needed[elements.first_sink :] = b"\1" * (len(elements.op) - elements.first_sink)
        viewed: dict[int, list[tuple[tuple[int, ...], ...]]] = defaultdict(list)
        for number, group in enumerate(elements.groups):
            columns = tuple(zip(*(elements.operands[value] for value in group.values), strict=True))
            viewed[number].append(columns)
        done: set[int] = set()
        for value in range(len(elements.op) - 1, -1, -1):
            if not needed[value]:
                continue
            number = elements.group_of.get(value, -1)
            if number < 0 or len(elements.groups[number].values) == 1:
                for operand in elements.operands[value]:
                    needed[operand] = 1
            elif number not in done:
                done.add(number)
                for columns in viewed[number]:
                    for column in columns:
                        for operand in elements.views.get(column, column):
                            needed[operand] = 1
        for value in range(len(elements.op)):
            lonely = value not in elements.group_of and value not in elements.aliases
            if needed[value] and lonely and not elements.source(value):
                elements.place((value,), (0,))

    def _together(self, sinks: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Next values by the arrays of their registers, in the order there.

        Where most elements take over the contents of a neighbour, also by the distance to it.
        """
        elements = self._elements
        if elements.op[sinks[0]] != "next":
            return [sinks]
        arrays: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for sink in sinks:
            array, index = elements.stored[elements.register(sink).value]
            arrays[array].append((index, sink))
        result = []
        for found in arrays.values():
            found.sort()
            sources = [elements.stored.get(elements.operands[sink][0], (-1, 0)) for _, sink in found]
            ways = [(array, place - index) for (array, place), (index, _) in zip(sources, found, strict=True)]
            way, count = Counter(ways).most_common(1)[0]
            if way[0] < 0 or count < len(found) / 2:
                result.append(tuple(sink for _, sink in found))
                continue
            by_way: dict[tuple[int, int], list[int]] = defaultdict(list)
            for (_, sink), way in zip(found, ways, strict=True):
                by_way[way].append(sink)
            result += [tuple(same) for same in by_way.values()]
        return result

    def _slots(self, sinks: tuple[int, ...]) -> tuple[int, ...]:
        """The steps of a loop: as far apart as what it computes lies in memory, if not too far."""
        elements = self._elements
        if elements.op[sinks[0]] == "next":
            indices = [elements.stored[elements.register(sink).value][1] for sink in sinks]
            if indices[-1] - indices[0] < SPARSE * len(sinks):
                return tuple(index - indices[0] for index in indices)
        return tuple(range(len(sinks)))

    def _split(self, sinks: tuple[int, ...]) -> list[tuple[int, ...]]:
        """One group for each value that many of the sinks share, such as the enable of a bank.

        Sharing is looked for in the operands of the sinks and two levels below.
        """
        parts = [sinks]
        for path in ((0,), (1,), (2,), (0, 0), (0, 1), (0, 2), (1, 0), (0, 1, 0), (0, 2, 0)):
            result = []
            for part in parts:
                by_operand: dict[int, list[int]] = defaultdict(list)
                for sink in part:
                    by_operand[self._follow(sink, path)].append(sink)
                sizes = [len(values) for values in by_operand.values()]
                if len(sizes) > 1 and min(sizes) >= 2 * MIN_ELEMENTS:
                    result += [tuple(values) for values in by_operand.values()]
                else:
                    result.append(part)
            parts = result
        return [part for part in parts if self._loopable(part)]

    def _follow(self, value: int, path: tuple[int, ...]) -> int:
        for index in path:
            operands = self._elements.operands[value]
            if index >= len(operands):
                return -1
            value = operands[index]
        return value

    def _loopable(self, sinks: tuple[int, ...]) -> bool:
        """Writes can share a loop if they are side by side in the rows of one memory and share the address."""
        elements = self._elements
        if elements.op[sinks[0]] != "write":
            return True
        return len({elements.operands[sink][0] for sink in sinks}) == 1

    def _grow(self, seed: tuple[int, ...], promised: bool = False) -> None:
        """Makes groups of these values and of what they are computed from, if loops cost less than scalar code.

        ``promised``: the values become a group in any case.
        """
        elements = self._elements
        tree: dict[tuple[int, ...], None] = {}
        taken: set[int] = set()
        count = len(seed)
        slots = self._slots(seed)
        gathers: dict[tuple[int, ...], None] = {}
        views: dict[tuple[int, ...], tuple[int, ...]] = {}
        aliases: list[tuple[int, ...]] = []
        stack = [seed]
        while stack:
            values = stack.pop()
            if values in tree or values in gathers or values in views:
                continue
            if values in elements.views:
                continue
            if values is not seed:
                parts = self._side_by_side(values, taken)
                if parts:
                    views[values] = parts
                    taken.update(parts)
                    continue
                if self._aliases(values):
                    aliases.append(values)
                    gathers[values] = None
                    continue
            if not self._computable(values, taken):
                gathers[values] = None
                continue
            tree[values] = None
            taken.update(values)
            operands = [elements.operands[value] for value in values]
            stack += [column for column in zip(*operands, strict=True) if not self._free(column)]
        scalar = sum(count * _cost(elements.op[values[0]]) for values in (*tree, *views))
        vector = sum(1 + count * _cost(elements.op[values[0]]) / 6 for values in tree) + len(views)
        vector += sum(self._gather_cost(values, slots) for values in gathers)
        if elements.op[seed[0]] == "next":
            vector += self._gather_cost(tuple(elements.register(sink).value for sink in seed), slots)
        if not promised and vector >= scalar:
            return
        for values in tree:
            elements.place(values, slots)
        for values, parts in views.items():
            elements.views[values] = parts
            if not all(elements.source(part) for part in parts):
                self._grow(parts, promised=True)
        for values in aliases:
            elements.aliases.update(value for value in values if value not in elements.group_of)
            inner = tuple(dict.fromkeys(elements.operands[value][0] for value in values))
            if len(inner) >= MIN_ELEMENTS and not any(elements.source(value) for value in inner):
                self._grow(inner)

    def _side_by_side(self, values: tuple[int, ...], taken: set[int]) -> tuple[int, ...]:
        """The parts of concatenations if they can lie in memory such that the words can be read there; else nothing."""
        elements = self._elements
        first = values[0]
        if elements.op[first] != "concat" or elements.width[first] not in BYTES or len(set(values)) < len(values):
            return ()
        widths = {elements.width[part] for part in elements.operands[first]}
        if len(widths) != 1 or not widths <= set(BYTES):
            return ()
        if any(elements.shapes[value] != elements.shapes[first] for value in values):
            return ()
        parts = tuple(part for value in values for part in elements.operands[value])
        if len(set(parts)) < len(parts):
            return ()
        if all(elements.source(part) for part in parts):
            return parts if self._runs(parts, range(len(parts))) == 1 else ()
        if len({elements.shapes[part] for part in parts}) != 1:
            return ()
        number = elements.group_of.get(parts[0], -1)
        if number >= 0 and elements.groups[number].values == parts:
            return parts
        return parts if self._computable(parts, taken) else ()

    def _aliases(self, values: tuple[int, ...]) -> bool:
        """Whether the values are slices that can be read in place."""
        elements = self._elements
        for value in values:
            if elements.op[value] != "slice" or elements.width[value] not in BYTES or elements.parameter[value] % 8:
                return False
            if elements.op[elements.operands[value][0]] == "const" or value in elements.group_of:
                return False
        inner = [elements.operands[value][0] for value in values]
        if len(set(inner)) == len(inner):  # each element has its own value, of which the loop takes a slice
            return all(elements.source(value) for value in inner) and self._runs(values, range(len(values))) == 1
        return elements.width[inner[0]] <= WORD or all(elements.source(value) for value in inner)

    def _free(self, values: tuple[int, ...]) -> bool:
        """Whether a loop gets this operand for nothing: one value for all, or constants."""
        first = values[0]
        if all(value == first for value in values):
            return True
        return all(self._elements.op[value] == "const" for value in values)

    def _computable(self, values: tuple[int, ...], taken: set[int]) -> bool:
        """Whether the values can be elements of a new group."""
        elements = self._elements
        op = elements.op[values[0]]
        if op in SOURCES or len(set(values)) < len(values):
            return False
        if any(value in elements.group_of or value in taken or value in elements.aliases for value in values):
            return False
        shape = elements.shapes[values[0]]
        if any(elements.shapes[value] != shape for value in values):
            return False
        if op == "read":
            return self._same_memory(values)
        if elements.width[values[0]] > WORD:
            return False
        wide = [operand for operand in elements.operands[values[0]] if elements.width[operand] > WORD]
        if wide:
            shared = {elements.operands[value][0] for value in values}
            return op in ("slice", "pick") and len(shared) == 1
        return True

    def _same_memory(self, values: tuple[int, ...]) -> bool:
        elements = self._elements
        segments = [elements.netlist.segments[elements.parameter[value]] for value in values]
        addresses = {elements.operands[value] for value in values}
        return len(addresses) == 1 and len({segment.memory for segment in segments}) == 1

    def _gather_cost(self, values: tuple[int, ...], slots: Sequence[int]) -> float:
        """Instructions to bring values together: one for each run of neighbours."""
        runs = self._runs(values, slots)
        return 0.0 if runs == 1 else 2.0 * runs

    def _runs(self, values: tuple[int, ...], slots: Sequence[int]) -> int:
        """Number of pieces of memory in which the values lie; equal neighbours count as one piece, too."""
        addresses = [self._address(value) for value in values]
        runs = 1
        for ((owner, at, size), slot), ((next_owner, next_at, _), next_slot) in pairwise(
            zip(addresses, slots, strict=True)
        ):
            if next_owner != owner or next_at not in (at, at + size * (next_slot - slot)):
                runs += 1
        return runs

    def _address(self, value: int) -> tuple[int, int, int]:
        """Where a value will lie: what it is stored in, byte, bytes to the next."""
        elements = self._elements
        low, size = 0, -(-elements.width[value] // 8)
        if elements.op[value] == "slice" and value not in elements.group_of and elements.parameter[value] % 8 == 0:
            low = elements.parameter[value] // 8
            value = elements.operands[value][0]
        whole = SIZES[c_type(elements.width[value])]
        if not low and size > whole // 2:
            size = whole
        if value in elements.stored:
            array, index = elements.stored[value]
            return array, index * whole + low, size
        if value in elements.group_of:
            group = elements.group_of[value]
            return -1 - group, elements.groups[group].slots[elements.position[value]] * whole + low, size
        return -1 - len(elements.groups) - value, low, size

    def _reductions(self) -> list[tuple[int, ...]]:
        """Parts of concatenations, and of chains of one operator, that are computed alike."""
        elements = self._elements
        marks = elements.marks
        inner: set[int] = set()
        found = []
        for value in range(elements.first_sink - 1, -1, -1):
            op = elements.op[value]
            if not marks[value] or value in inner or op not in ("concat", "and", "or", "xor", "add"):
                continue
            parts: list[int] = []
            stack = [value]
            while stack:
                top = stack.pop()
                if top != value and (op == "concat" or elements.op[top] != op or top in elements.group_of):
                    parts.append(top)
                else:
                    inner.add(top)
                    stack += elements.operands[top][::-1]
            by_shape: dict[int, list[int]] = defaultdict(list)
            for part in dict.fromkeys(parts):
                if not elements.source(part) and part not in elements.group_of:
                    by_shape[elements.shapes[part]].append(part)
            found += [tuple(same) for same in by_shape.values() if len(same) >= MIN_ELEMENTS]
        return found


def _cost(op: str) -> int:
    return 3 if op in ("mul", "shl", "shr", "sar") else 2 if op in ("add", "sub", "mux", "concat") else 1


def classify(netlist: Netlist) -> Elements:
    """Groups of all values and sinks of a netlist."""
    elements = Elements(netlist)
    Classifier(elements).run()
    return elements
