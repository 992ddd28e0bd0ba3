"""The C function of one fragment: scalar code, in blocks that registers may skip, or loops."""

from sley.sim.fast.emit.design import Design
from sley.sim.fast.emit.function import Function
from sley.sim.fast.emit.loop import LoopWriter
from sley.sim.fast.emit.scalar_sinks import SINKS
from sley.sim.fast.emit.scalars import Scalars
from sley.sim.fast.read.netlist import WORD
from sley.sim.fast.schedule.fragments import Fragment
from sley.sim.fast.schedule.guards import Block, blocks
from sley.sim.fast.schedule.loops import loops


def write_fragment(design: Design, index: int, fragment: Fragment) -> Function:
    """Writes the function of the fragment with this number."""
    function = Function(design, index, fragment)
    scalars, elements = Scalars(function), design.elements
    if fragment.elements == 1:
        groups = sorted(fragment.groups, key=lambda number: elements.groups[number].values[0])
        _ScalarWriter(scalars).write(groups)
    else:
        found = loops(elements, fragment.groups)
        function.lines += [line for groups in found for line in LoopWriter(scalars, groups).write()]
    function.lines += function.tail
    return function


class _ScalarWriter:
    """Writes groups of one element."""

    def __init__(self, scalars: Scalars) -> None:
        self._scalars = scalars
        self._function = scalars.function
        self._design = scalars.function.design
        self._elements = scalars.function.elements

    def write(self, groups: list[int]) -> None:
        """Statements for these groups, operands first."""
        schedule = self._design.schedule
        unread = {number for number in groups if number not in schedule.stored}
        writable = {n for n in unread if self._elements.groups[n].op != "next" or n in schedule.in_place}
        outside, guarded = blocks(self._elements, groups, writable, schedule.stored)
        for number in outside:
            self._group(number)
        read_later = self._read_later(guarded)
        for block in guarded:
            self._block(block, read_later)

    def _read_later(self, guarded: list[Block]) -> set[int]:
        """Registers of a block that a later one reads."""
        elements = self._elements
        writers: dict[int, int] = {}
        for index, block in enumerate(guarded):
            for number in block.groups:
                value = elements.groups[number].values[0]
                if elements.op[value] == "next":
                    writers[elements.register(value).value] = index
        found = set()
        for index, block in enumerate(guarded):
            stack = [elements.groups[number].values[0] for number in block.groups]
            stack += [value for value, _ in block.conditions]
            seen: set[int] = set()
            while stack:
                value = stack.pop()
                if value not in seen and value not in self._scalars.known:
                    seen.add(value)
                    stack += elements.operands[value]
                    if writers.get(value, index) < index:
                        found.add(value)
        return found

    def _block(self, block: Block, read_later: set[int]) -> None:
        """Computes registers only if they do not keep their contents."""
        function, scalars = self._function, self._scalars
        texts = [f"!{scalars.operand(value)}" if holds else scalars.operand(value) for value, holds in block.conditions]
        outer, known = function.lines, dict(scalars.known)
        function.lines = []
        stores: list[str] = []
        for number in block.groups:
            value = self._elements.groups[number].values[0]
            if self._elements.op[value] != "next":
                self._group(number)
                continue
            register = self._elements.register(value)
            place, name = self._design.places[register.value], function.name("x")
            kind = "u32" if register.width <= 32 else "u64"
            expression, difference = scalars.operand(register.next), function.difference((register.value,))
            if register.value in read_later:
                outer.append(f"{kind} {name} = {place};")
                function.lines.append(f"{name} = {expression}; {difference} |= {name} ^ {place};")
                function.tail.append(f"{place} = {name};")
            else:
                function.lines.append(f"const {kind} {name} = {expression}; {difference} |= {name} ^ {place};")
                stores.append(f"{place} = {name};")
        inner, function.lines, scalars.known = function.lines, outer, known
        function.lines += [f"if ({' | '.join(texts)}) {{", *(f"  {line}" for line in (*inner, *stores)), "}"]

    def _group(self, number: int) -> None:
        value = self._elements.groups[number].values[0]
        sink = SINKS.get(self._elements.op[value])
        if sink:
            sink(self._scalars, value)
            return
        self._scalars.compute(value)
        if number in self._design.schedule.stored:
            self._store(value)

    def _store(self, value: int) -> None:
        """A value that other fragments read."""
        function, place, local = self._function, self._design.places[value], self._scalars.known[value]
        width = self._elements.width[value]
        name = function.difference((value,))
        if width <= WORD:
            function.lines.append(f"{name} |= {local} ^ {place}; {place} = {local};")
        else:
            changed = f"{name} |= !w_eq({local}, {place}, {width});"
            function.lines.append(f"{changed} memcpy({place}, {local}, sizeof {local});")
