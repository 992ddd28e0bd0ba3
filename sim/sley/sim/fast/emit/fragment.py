"""The C function of one fragment: scalar code, and loops by ``LoopWriter``."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from sley.sim.fast.emit.commit import CommitUnit, WriteUnit
from sley.sim.fast.emit.expressions import literal, mask, narrow
from sley.sim.fast.emit.gather import SHORT_RUN
from sley.sim.fast.emit.layout import Place
from sley.sim.fast.emit.loop import LoopWriter
from sley.sim.fast.optimise.machine_types import c_type, words
from sley.sim.fast.read.netlist import WORD, Register
from sley.sim.fast.schedule.guards import Block, blocks
from sley.sim.fast.schedule.loops import loops
from sley.sim.fast.schedule.schedule import Fragment

if TYPE_CHECKING:
    from sley.sim.fast.emit.emit import Emitter


UNCONDITIONAL = 2
"""So many bytes of marks are written without asking whether there is a difference: a wrong guess costs more."""


_NOT_PLAIN = re.compile(r"\b(memcpy|[wn]_\w+)\(")
"""Calls of functions that may use vector registers."""


class FragmentWriter:
    """Writes the function of one fragment."""

    def __init__(self, emitter: "Emitter", index: int, fragment: Fragment) -> None:
        self.emitter = emitter
        self.elements = emitter.elements
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
        self._local: dict[int, str] = {}
        self._unit: CommitUnit | None = None
        self._differences: dict[tuple[bool, frozenset[int]], str] = {}
        self._count = 0

    def write(self) -> None:
        groups = self.fragment.groups
        if self.fragment.elements == 1:
            self._scalars(sorted(groups, key=lambda number: self.elements.groups[number].values[0]))
        else:
            self.lines += [line for loop in loops(self.elements, groups) for line in LoopWriter(self, loop).write()]
        self.lines += self.tail

    def function(self) -> list[str]:
        plain = self.fragment.elements == 1 and not _NOT_PLAIN.search("\n".join(self.lines))
        lines = [f"// {self.fragment.home}, {self.fragment.elements}"]
        lines.append(f"{'PLAIN ' if plain else ''}void f{self.index}(S* s) {{")
        lines += [f"  u64 {name} = 0;" for name in self._differences.values()]
        lines += [f"  {line}" for line in self.lines]
        for (_, readers), name in self._differences.items():
            marks = self.emitter.mark(readers, name)
            if len(marks) > UNCONDITIONAL:
                marks = [f"if ({name}) {{ {' '.join(self.emitter.mark(readers))} }}"]
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
        readers = {reader for value in values for reader in self.emitter.readers.get(value, ())}
        if unit:
            unit.readers.update(reader for reader in readers if reader > self.index)
            readers = {reader for reader in readers if reader <= self.index}
        return self._differences.setdefault((unit is not None, frozenset(readers)), f"d{len(self._differences)}")

    def memory_difference(self, memory: int) -> str:
        """The variable that collects changes of a memory that this fragment writes at once."""
        readers = frozenset(self.emitter.memory_readers.get(memory, ()))
        return self._differences.setdefault((False, readers), f"d{len(self._differences)}")

    def name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    # Scalar values.

    def _read(self, value: int) -> Place:
        """A value that is stored."""
        return self.emitter.places[value]

    def operand(self, value: int) -> str:
        """A value as an expression, or the name of an array of words if it is wide."""
        elements = self.elements
        if value in self._local:
            return self._local[value]
        width = elements.width[value]
        if elements.op[value] == "const":
            number = elements.parameter[value]
            return literal(number, width) if width <= WORD else self._wide_constant(number, width)
        if value in self.emitter.places:
            return str(self._read(value))
        self._compute(value)  # a cheap one
        return self._local[value]

    def _wide_constant(self, number: int, width: int) -> str:
        name = self.name("k")
        parts = ", ".join(f"{number >> 64 * word & (1 << 64) - 1:#x}ull" for word in range(words(width)))
        self.lines.append(f"static const u64 {name}[] = {{{parts}}};")
        return name

    def _scalars(self, groups: list[int]) -> None:
        schedule = self.emitter.schedule
        unread = {number for number in groups if number not in schedule.stored}
        writable = {n for n in unread if self.elements.groups[n].op != "next" or n in schedule.in_place}
        outside, guarded = blocks(self.elements, groups, writable, schedule.stored)
        for number in outside:
            self._scalar(number)
        read_later = self._read_later(guarded)
        for block in guarded:
            self._block(block, read_later)

    def _read_later(self, guarded: list[Block]) -> set[int]:
        """Registers of a block that a later one reads."""
        elements = self.elements
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
                if value not in seen and value not in self._local:
                    seen.add(value)
                    stack += elements.operands[value]
                    if writers.get(value, index) < index:
                        found.add(value)
        return found

    def _block(self, block: Block, read_later: set[int]) -> None:
        """Computes registers only if they do not keep their contents."""
        texts = [f"!{self.operand(value)}" if holds else self.operand(value) for value, holds in block.conditions]
        outer, known = self.lines, dict(self._local)
        self.lines = []
        stores: list[str] = []
        for number in block.groups:
            value = self.elements.groups[number].values[0]
            if self.elements.op[value] != "next":
                self._scalar(number)
                continue
            register = self.elements.register(value)
            place, name = self.emitter.places[register.value], self.name("x")
            kind = "u32" if register.width <= 32 else "u64"
            expression, difference = self.operand(register.next), self.difference((register.value,))
            if register.value in read_later:
                outer.append(f"{kind} {name} = {place};")
                self.lines.append(f"{name} = {expression}; {difference} |= {name} ^ {place};")
                self.tail.append(f"{place} = {name};")
            else:
                self.lines.append(f"const {kind} {name} = {expression}; {difference} |= {name} ^ {place};")
                stores.append(f"{place} = {name};")
        inner, self.lines, self._local = self.lines, outer, known
        self.lines += [f"if ({' | '.join(texts)}) {{", *(f"  {line}" for line in (*inner, *stores)), "}"]

    def _scalar(self, number: int) -> None:
        value = self.elements.groups[number].values[0]
        sink = _SINKS.get(self.elements.op[value])
        if sink:
            sink(self, value)
            return
        self._compute(value)
        if number in self.emitter.schedule.stored:
            self._store(number, value)

    def _store(self, number: int, value: int) -> None:
        place, local = self.emitter.places[value], self._local[value]
        width = self.elements.width[value]
        name = self.difference((value,))
        if width <= WORD:
            self.lines.append(f"{name} |= {local} ^ {place}; {place} = {local};")
        else:
            self.lines.append(f"{name} |= !w_eq({local}, {place}, {width}); memcpy({place}, {local}, sizeof {local});")

    def _compute(self, value: int) -> None:
        elements = self.elements
        width, op = elements.width[value], elements.op[value]
        operands = elements.operands[value]
        widths = [elements.width[operand] for operand in operands]
        if op == "read":
            expression = self._memory_read(value)
        elif width > WORD or any(size > WORD for size in widths):
            self._compute_wide(value)
            return
        else:
            kind = "u32" if width <= 32 else "u64"
            if op in ("lts", "les", "ltu", "leu", "eq", "ne", "parity"):
                kind = "u32"
            texts = [self.operand(operand) for operand in operands]
            expression = narrow(op, width, elements.parameter[value], texts, widths, kind)
        kind = "u32" if width <= 32 else "u64"
        self._local[value] = f"v{value}"
        self.lines.append(f"const {kind} v{value} = {expression};")

    def _memory_read(self, value: int) -> str:
        elements, net = self.elements, self.emitter.net
        segment = elements.parameter[value]
        number = net.segments[segment].memory
        depth = net.memories[number].depth
        (address_value,) = elements.operands[value]
        address = self.operand(address_value)
        strip, count, position = self.emitter.strips[segment]
        inside = f"s->{strip.name}[(u64){address} * {count} + {position}]"
        if depth >= 1 << elements.width[address_value]:
            return inside
        return f"({address} < {depth}u ? {inside} : 0)"

    def _compute_wide(self, value: int) -> None:
        elements = self.elements
        op, width, parameter = elements.op[value], elements.width[value], elements.parameter[value]
        operands = elements.operands[value]
        widths = [elements.width[operand] for operand in operands]
        name = f"v{value}"
        narrow_result = {
            "slice": lambda: f"w_pick({self.operand(operands[0])}, {widths[0]}, {parameter}) & {mask(width)}",
            "pick": lambda: (
                f"w_pick({self.operand(operands[0])}, {widths[0]}, (u64){self.operand(operands[1])} + {parameter})"
                f" & {mask(width)}"
            ),
            "eq": lambda: f"w_eq({self.operand(operands[0])}, {self.operand(operands[1])}, {widths[0]})",
            "ne": lambda: f"!w_eq({self.operand(operands[0])}, {self.operand(operands[1])}, {widths[0]})",
            "ltu": lambda: f"w_ltu({self.operand(operands[0])}, {self.operand(operands[1])}, {widths[0]})",
            "leu": lambda: f"!w_ltu({self.operand(operands[1])}, {self.operand(operands[0])}, {widths[0]})",
            "lts": lambda: f"w_lts({self.operand(operands[0])}, {self.operand(operands[1])}, {widths[0]})",
            "les": lambda: f"!w_lts({self.operand(operands[1])}, {self.operand(operands[0])}, {widths[0]})",
            "parity": lambda: f"w_parity({self.operand(operands[0])}, {widths[0]})",
        }
        if width <= WORD:
            kind = "u32" if width <= 32 else "u64"
            expression = narrow_result[op]()
            self.lines.append(f"const {kind} {name} = ({kind})({expression});")
            self._local[value] = name
            return
        lines = [f"u64 {name}[{words(width)}];"]
        if op == "concat":
            lines[0] = f"u64 {name}[{words(width)}] = {{0}};"
            lines += self._pack(name, operands)
        elif op == "mux":
            select, if_0, if_1 = (self.operand(operand) for operand in operands)
            lines.append(f"memcpy({name}, {select} ? {if_1} : {if_0}, sizeof {name});")
        elif op == "sext":
            inner = self._as_wide(operands[0])
            lines.append(f"w_sext({name}, {width}, {inner}, {widths[0]});")
        elif op == "slice":
            lines.append(f"w_slice({name}, {width}, {self.operand(operands[0])}, {widths[0]}, {parameter});")
        elif op in ("shl", "shr", "sar"):
            a, amount = (self.operand(operand) for operand in operands)
            lines.append(f"w_{op}({name}, {width}, {a}, {amount});")
        else:
            arguments = ", ".join(self.operand(operand) for operand in operands)
            lines.append(f"w_{op}({name}, {width}, {arguments});")
        self.lines += lines
        self._local[value] = name

    def _as_wide(self, value: int) -> str:
        """An operand of any width as an array of words."""
        text = self.operand(value)
        if self.elements.width[value] > WORD:
            return text
        name = self.name("x")
        self.lines.append(f"const u64 {name}[1] = {{{text}}};")
        return name

    def _pack(self, name: str, parts: Sequence[int]) -> list[str]:
        """Statements that put parts into an array of words which is zero."""
        elements = self.elements
        lines: list[str] = []
        low = index = 0
        while index < len(parts):
            part = parts[index]
            width = elements.width[part]
            count = self._run_length(parts, index)
            if count >= SHORT_RUN and width in (8, 16, 32, 64) and low % 8 == 0:
                place = self._read(part)
                for other in parts[index : index + count]:
                    self._read(other)
                lines.append(f"memcpy((u8*){name} + {low // 8}, &{place}, {count * width // 8});")
            elif count >= SHORT_RUN:
                place = self._read(part)
                for other in parts[index : index + count]:
                    self._read(other)
                put = f"w_put({name}, {low} + i * {width}, {width}, s->{place.name}[{place.index} + i])"
                lines.append(f"for (unsigned i = 0; i < {count}; i++) {put};")
            elif elements.op[part] != "const" or elements.parameter[part]:
                put = "w_put" if width <= WORD else "w_put_wide"
                lines.append(f"{put}({name}, {low}, {width}, {self.operand(part)});")
                count = 1
            else:
                count = 1
            low += sum(elements.width[other] for other in parts[index : index + count])
            index += count
        return lines

    def _run_length(self, parts: Sequence[int], start: int) -> int:
        """How many parts from here on lie side by side in one array of the state."""
        places = self.emitter.places
        first = places.get(parts[start])
        if first is None or first.index < 0 or parts[start] in self._local:
            return 1
        width = self.elements.width[parts[start]]
        count = 1
        while start + count < len(parts):
            part = parts[start + count]
            place = places.get(part)
            if place is None or self.elements.width[part] != width or part in self._local:
                break
            if (place.name, place.index) != (first.name, first.index + count):
                break
            count += 1
        return count

    # Sinks of scalar code.

    def commit_unit(self) -> CommitUnit:
        if not self._unit:
            self._unit = CommitUnit(len(self.emitter.commits))
            self.emitter.commits.append(self._unit)
        return self._unit

    def _next(self, value: int) -> None:
        register = self.emitter.net.registers[self.elements.parameter[value]]
        if register.clock < 0 or register.next == register.value:
            return
        place = self.emitter.places[register.value]
        if self.elements.group_of[value] in self.emitter.schedule.in_place:
            self._overwrite(register, place)
            return
        unit = self.commit_unit()
        target = str(place).replace("s->r", "s->n", 1)
        expression = self.operand(register.next)
        name = self.difference((register.value,), unit)
        self.lines.append(f"{target} = {expression}; {name} |= {target} ^ {place};")
        if place.index < 0:
            unit.scalars.append(place)
        else:
            unit.lines.append(f"{place} = {target};")

    def _overwrite(self, register: Register, place: Place) -> None:
        """The contents change when the whole fragment has read what it needs."""
        name = self.name("x")
        expression = self.operand(register.next)
        difference = self.difference((register.value,))
        self.lines.append(f"const {place.type} {name} = {expression}; {difference} |= {name} ^ {place};")
        self.tail.append(f"{place} = {name};")

    def _output(self, value: int) -> None:
        number = self.elements.parameter[value]
        port = self.emitter.net.outputs[number]
        text = self.operand(port.value)
        if port.width <= WORD:
            self.lines.append(f"s->o{number} = {text};")
        else:
            self.lines.append(f"memcpy(s->o{number}, {text}, sizeof s->o{number});")

    def _reset(self, value: int) -> None:
        number = self.elements.parameter[value]
        self.lines.append(f"s->rs{number} = {self.operand(self.elements.operands[value][0])};")

    def _event(self, value: int) -> None:
        number = self.elements.parameter[value]
        event = self.emitter.net.events[number]
        enable = self.operand(event.enable)
        condition = {"print": enable, "cover": f"{enable} && {{}}"}.get(event.kind, f"{enable} && !{{}}")
        if event.test >= 0:
            condition = condition.format(self.operand(event.test))
        for index, argument in enumerate(event.arguments):
            self.lines.append(f"s->ea{number}[{index}] = {self.operand(argument)};")
        self.lines.append(f"s->e{number} = {condition};")
        if event.clock < 0:
            self.lines.append(f"s->unclocked |= s->e{number};")

    def _write(self, value: int) -> None:
        elements, net = self.elements, self.emitter.net
        write = net.writes[elements.parameter[value]]
        if write.clock < 0:
            return
        address, data, enable = (self.operand(operand) for operand in elements.operands[value])
        kind, bitwise = c_type(elements.width[value]), net.width[write.enable] > 1
        memory = net.segments[write.segment].memory
        depth = net.memories[memory].depth
        if elements.group_of[value] in self.emitter.schedule.in_place:
            strip, row, position = self.emitter.strips[write.segment]
            name, difference = self.name("w"), self.memory_difference(memory)
            self.lines.append(f"const u64 {name}_at = {address}, {name}_new = {data}, {name}_on = {enable};")
            new = f"({name}_new & {name}_on) | (*p & ~{name}_on)" if bitwise else f"{name}_new"
            self.tail += [
                f"if ({name}_on && {name}_at < {depth}u) {{",
                f"  {kind}* const p = s->{strip.name} + {name}_at * {row} + {position};",
                f"  const {kind} v = {new};",
                f"  {difference} |= v ^ *p; *p = v;",
                "}",
            ]
            return
        unit = self.write_unit(elements.parameter[value], 1)
        number = unit.number
        self.lines.append(f"s->wa{number} = {address}; s->wd{number}[0] = {data};")
        self.lines.append(f"s->we{number}[0] = {enable}; {unit.pending(f's->we{number}[0]')}")
        unit.copy([self.emitter.strips[write.segment]], 1, kind, depth, bitwise)

    def write_unit(self, first: int, count: int) -> WriteUnit:
        emitter, net = self.emitter, self.emitter.net
        write = net.writes[first]
        order = emitter.write_order[first]
        unit = WriteUnit(write.clock, len(emitter.writes), order, net.segments[write.segment].memory)
        emitter.writes.append(unit)
        number = unit.number
        emitter.layout.add(f"wa{number}", "u64")
        emitter.layout.add_elements(f"wd{number}", c_type(net.width[write.data]), count)
        emitter.layout.add_elements(f"we{number}", c_type(net.width[write.enable]), count)
        return unit


_SINKS: dict[str, Callable[[FragmentWriter, int], None]] = {
    "next": FragmentWriter._next,
    "output": FragmentWriter._output,
    "reset": FragmentWriter._reset,
    "event": FragmentWriter._event,
    "write": FragmentWriter._write,
}
