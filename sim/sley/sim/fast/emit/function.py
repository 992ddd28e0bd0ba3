"""The C function of a fragment while it is written: what its scalar code and its loops share."""

import re
from collections.abc import Iterable

from sley.sim.fast.emit.commit import CommitUnit, WriteUnit
from sley.sim.fast.emit.design import Design
from sley.sim.fast.optimise.machine_types import c_type
from sley.sim.fast.schedule.fragments import Fragment

UNCONDITIONAL = 2
"""So many bytes of marks are written without asking whether there is a difference: a wrong guess costs more."""

_NOT_PLAIN = re.compile(r"\b(memcpy|[wn]_\w+)\(")
"""Calls of functions that may use vector registers."""


class Function:
    """Statements, names, and what is done at the end of the function with the differences that it found."""

    def __init__(self, design: Design, index: int, fragment: Fragment) -> None:
        self.design = design
        self.elements = design.elements
        self.index = index
        self.fragment = fragment
        self.lines: list[str] = []
        """Statements so far; of a fragment with loops, what comes before them."""
        self.tail: list[str] = []
        """Statements after all of these and the loops."""
        self.gathered: dict[tuple[tuple[int, ...], tuple[int, ...]], str] = {}
        """Arrays of values that were brought together, by the values and their slots."""
        self.masks: dict[tuple[str, str], str] = {}
        """Tables that say which slots of a loop are elements: names by type and contents."""
        self.overwritten: list[tuple[int, int, int]] = []
        """Bytes of the state that loops so far have overwritten with next values: first, end, bytes of an element."""
        self._unit: CommitUnit | None = None
        self._differences: dict[tuple[bool, frozenset[int]], str] = {}
        self._count = 0

    def text(self) -> list[str]:
        """The whole function."""
        plain = self.fragment.elements == 1 and not _NOT_PLAIN.search("\n".join(self.lines))
        lines = [f"// {self.fragment.home}, {self.fragment.elements}"]
        lines.append(f"{'PLAIN ' if plain else ''}void f{self.index}(S* s) {{")
        lines += [f"  u64 {name} = 0;" for name in self._differences.values()]
        lines += [f"  {line}" for line in self.lines]
        for (_, readers), name in self._differences.items():
            marks = self.design.mark(readers, name)
            if len(marks) > UNCONDITIONAL:
                marks = [f"if ({name}) {{ {' '.join(self.design.mark(readers))} }}"]
            lines += [f"  {line}" for line in marks or [f"(void){name};"]]
        if self._unit:
            number = self._unit.number
            any_of = " | ".join(name for (copied, _), name in self._differences.items() if copied)
            lines.append(f"  s->changed[{number // 64}] |= (u64)(({any_of}) != 0) << {number % 64};")
        lines.append("}")
        return lines

    def difference(self, values: Iterable[int], unit: CommitUnit | None = None) -> str:
        """The variable that collects differences of values with the same readers.

        If they are copied at the end of the edge, by ``unit``, what runs after this fragment must not read them before.
        """
        readers = {reader for value in values for reader in self.design.readers.get(value, ())}
        if unit:
            unit.readers.update(reader for reader in readers if reader > self.index)
            readers = {reader for reader in readers if reader <= self.index}
        return self._differences.setdefault((unit is not None, frozenset(readers)), f"d{len(self._differences)}")

    def memory_difference(self, memory: int) -> str:
        """The variable that collects changes of a memory that this fragment writes at once."""
        readers = frozenset(self.design.memory_readers.get(memory, ()))
        return self._differences.setdefault((False, readers), f"d{len(self._differences)}")

    def name(self, prefix: str) -> str:
        """A name that nothing else in the function has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def commit_unit(self) -> CommitUnit:
        """What copies this fragment's next values at the end of the edge."""
        if not self._unit:
            self._unit = CommitUnit(len(self.design.commits))
            self.design.commits.append(self._unit)
        return self._unit

    def write_unit(self, first: int, count: int) -> WriteUnit:
        """What makes ``count`` writes of one port, of which ``first`` is the first, at the end of the edge."""
        design, net = self.design, self.design.net
        write = net.writes[first]
        order = design.write_order[first]
        unit = WriteUnit(write.clock, len(design.writes), order, net.segments[write.segment].memory)
        design.writes.append(unit)
        number = unit.number
        design.layout.add(f"wa{number}", "u64")
        design.layout.add_elements(f"wd{number}", c_type(net.width[write.data]), count)
        design.layout.add_elements(f"we{number}", c_type(net.width[write.enable]), count)
        return unit
