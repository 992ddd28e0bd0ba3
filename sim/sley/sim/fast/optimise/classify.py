"""Pass 4, classify: values that do the same for many elements become groups, and a group becomes one loop.

The start are *sinks*: registers and memory segments whose signals have one name but for the digits in it, and whose
next values are computed alike (the same operators in the same order, down to whatever registers they begin with). Such
sinks are the elements of a group. From there the grouping goes down: operand k of all elements is a group again. It
ends at registers, inputs, constants, at values that all elements share, and at values that are in a group already.
What no group takes is a group of one element, which becomes scalar code.

The method is that of superword-level parallelism (Larsen and Amarasinghe, PLDI 2000), on a netlist.
"""

from collections import defaultdict

from sley.sim.fast.optimise.elements import MIN_ELEMENTS, Elements
from sley.sim.fast.optimise.lattice import place_registers
from sley.sim.fast.optimise.locality import gather_cost, runs
from sley.sim.fast.optimise.machine_types import WIDTHS
from sley.sim.fast.optimise.seeds import divided, reductions, slots_of
from sley.sim.fast.read.netlist import SOURCES, WORD, Netlist


class Classifier:
    def __init__(self, elements: Elements) -> None:
        self._elements = elements

    def run(self) -> None:
        elements = self._elements
        candidates = elements.candidates()
        loops = [sinks for sinks in candidates if len(sinks) >= MIN_ELEMENTS]
        place_registers(elements, [sinks for sinks in loops if elements.op[sinks[0]] == "next"])
        for sinks in sorted(divided(elements, loops), key=len, reverse=True):
            if len(sinks) >= MIN_ELEMENTS:
                self._grow(sinks)
        for parts in reductions(elements):
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

    def _grow(self, seed: tuple[int, ...], promised: bool = False) -> None:
        """Makes groups of these values and of what they are computed from, if loops cost less than scalar code.

        ``promised``: the values become a group in any case.
        """
        elements = self._elements
        tree: dict[tuple[int, ...], None] = {}
        taken: set[int] = set()
        count = len(seed)
        slots = slots_of(elements, seed)
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
        vector += sum(gather_cost(elements, values, slots) for values in gathers)
        if elements.op[seed[0]] == "next":
            vector += gather_cost(elements, tuple(elements.register(sink).value for sink in seed), slots)
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
        if elements.op[first] != "concat" or elements.width[first] not in WIDTHS or len(set(values)) < len(values):
            return ()
        widths = {elements.width[part] for part in elements.operands[first]}
        if len(widths) != 1 or not widths <= WIDTHS:
            return ()
        if any(elements.shapes[value] != elements.shapes[first] for value in values):
            return ()
        parts = tuple(part for value in values for part in elements.operands[value])
        if len(set(parts)) < len(parts):
            return ()
        if all(elements.source(part) for part in parts):
            return parts if runs(elements, parts, range(len(parts))) == 1 else ()
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
            if elements.op[value] != "slice" or elements.width[value] not in WIDTHS or elements.parameter[value] % 8:
                return False
            if elements.op[elements.operands[value][0]] == "const" or value in elements.group_of:
                return False
        inner = [elements.operands[value][0] for value in values]
        if len(set(inner)) == len(inner):  # each element has its own value, of which the loop takes a slice
            return all(elements.source(value) for value in inner) and runs(elements, values, range(len(values))) == 1
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


def _cost(op: str) -> int:
    return 3 if op in ("mul", "shl", "shr", "sar") else 2 if op in ("add", "sub", "mux", "concat") else 1


def classify(netlist: Netlist) -> Elements:
    """Groups of all values and sinks of a netlist."""
    elements = Elements(netlist)
    Classifier(elements).run()
    return elements
