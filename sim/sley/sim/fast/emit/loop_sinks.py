"""What a loop leaves behind: next values of registers, writes of memories, and values that others read."""

from sley.sim.fast.emit.commit import WriteUnit
from sley.sim.fast.emit.loop_operands import LoopOperands
from sley.sim.fast.emit.scalars import Scalars
from sley.sim.fast.optimise.machine_types import ALIGN_ARRAYS, SIZES, c_type
from sley.sim.fast.schedule.ticks import memory_of


class LoopSinks:
    """The stores of a loop. They come after all that it computes, and collect what changes.

    Methods return the statements that make the lanes to store.
    """

    def __init__(self, scalars: Scalars, groups: list[int], operands: LoopOperands) -> None:
        self._scalars = scalars
        self._function = scalars.function
        self._design = scalars.function.design
        self._elements = scalars.function.elements
        self._groups = groups
        self._operands = operands
        self._vector = operands.vector
        self._setup = scalars.function.lines
        self.stores: list[str] = []
        """Statements at the end of the loop's body."""

    def keep(self, number: int, name: str) -> list[str]:
        """The values of a group, for fragments that read them."""
        group = self._elements.groups[number]
        kind, place = c_type(group.width), f"s->t{number} + i"
        difference = self._function.difference(group.values)
        return self._store(place, place, kind, self._narrowed(name, group.width, kind), difference)

    def next(self, values: tuple[int, ...]) -> list[str]:
        """Next values of registers, where these lie or, until the edge is over, at places of their own."""
        design, elements, operands = self._design, self._elements, self._operands
        registers = [design.net.registers[elements.parameter[value]] for value in values]
        if registers[0].clock < 0 or all(register.next == register.value for register in registers):
            return []
        in_place = self._elements.group_of[values[0]] in design.schedule.in_place
        unit = None if in_place else self._function.commit_unit()
        difference = self._function.difference([register.value for register in registers], unit)
        width = registers[0].width
        column = tuple(register.next for register in registers)
        places = [design.places[register.value] for register in registers]
        first, count = places[0], len(values)
        kind = first.type
        if operands.in_memory(column):  # a copy
            text = f"load_{self._vector.of(kind)}({operands.array(column)} + i)"
        else:
            text = self._narrowed(operands.column(column), width, kind)
        at = zip(operands.at, places, strict=True)
        if all(place.name == first.name and place.index == first.index + slot for slot, place in at):
            old = f"s->{first.name} + {first.index}"
            target = old if in_place else f"s->n{first.name[1:]} + {first.index}"
            array, index = elements.stored[registers[0].value]
            own = {register.value for register in registers}
            shared = any(
                value >= 0 and value not in own for value in elements.arrays[array][index : index + operands.slots]
            )
            low, high, _ = operands.stretch(elements.group_of[values[0]])
            others = (number for number in self._groups if elements.groups[number].op == "next")
            stretches = [operands.stretch(number) for number in others if elements.groups[number].values != values]
            mixed = any(start < high and low < end for start, end, _ in stretches)
            if unit and shared and count < operands.count:
                unit.lines += [f"{place} = {str(place).replace('s->r', 's->n', 1)};" for place in places]
            elif unit:
                unit.lines.append(f"memcpy({old}, {target}, {operands.count * SIZES[kind]});")
            return self._store(f"{target} + i", f"{old} + i", kind, text, difference, shared, mixed)
        table = operands.table([place.offset for place in places], "u32")
        shift = 0 if in_place else design.next_shift
        if unit:
            unit.lines.append(
                f"{{ static const u32 k[] = {{{', '.join(str(place.offset) for place in places)}}}; "
                f"for (int j = 0; j < {count}; j++) *({kind}*)AT(k[j]) = *({kind}*)AT(k[j] + {shift}); }}"
            )
        name = self._function.name("x")
        self.stores += [
            f"for (int l = 0; l < {self._vector.lanes} && i + l < {count}; l++) {{",
            f"  {difference} |= {name}[l] ^ *({kind}*)AT({table}[i + l]);",
            f"  *({kind}*)AT({table}[i + l] + {shift}) = {name}[l];",
            "}",
        ]
        return [f"const {self._vector.of(kind)} {name} = {text};"]

    def write(self, values: tuple[int, ...]) -> list[str]:
        """Writes of segments of a row."""
        design, elements, net = self._design, self._elements, self._design.net
        operands = self._operands
        writes = [net.writes[elements.parameter[value]] for value in values]
        if writes[0].clock < 0:
            return []
        if self._row(values):
            return self._overwrite_row(values)
        unit: WriteUnit = self._function.write_unit(elements.parameter[values[0]], len(values))
        number, count = unit.number, len(values)
        self._setup.append(f"s->wa{number} = {self._scalars.operand(writes[0].address)};")
        data_width, enable_width = net.width[writes[0].data], net.width[writes[0].enable]
        kind, enable_kind = c_type(data_width), c_type(enable_width)
        data = self._narrowed(operands.column(tuple(write.data for write in writes)), data_width, kind)
        column = operands.column(tuple(write.enable for write in writes))
        enable = self._narrowed(column, enable_width, enable_kind)
        used = self._used(enable_kind)
        enable = f"{enable} & {used}" if used else enable
        strips = [design.strips[write.segment] for write in writes]
        unit.copy(strips, count, kind, net.memories[unit.memory].depth, enable_width > 1)
        total, vector = f"any{number}", self._vector.of(enable_kind)
        self._setup.append(f"{vector} {total} = {{0}};")
        self._function.tail.append(unit.pending(f"any_{vector}({total})"))
        name = self._function.name("y")
        return [
            f"const {vector} {name} = {enable};",
            f"store_{self._vector.of(kind)}(s->wd{number} + i, {data});",
            f"store_{vector}(s->we{number} + i, {name}); {total} |= {name};",
        ]

    def _row(self, values: tuple[int, ...]) -> bool:
        """Whether these writes may overwrite a row at once, and lie side by side in it."""
        elements, design = self._elements, self._design
        number = elements.group_of[values[0]]
        if number not in design.schedule.in_place:
            return False
        memory = memory_of(elements, number)
        if any(elements.groups[n].op == "read" and memory_of(elements, n) == memory for n in self._groups):
            return False
        strips = [design.strips[design.net.writes[elements.parameter[value]].segment] for value in values]
        first, _, position = strips[0]
        return all(
            strip.name == first.name and at == position + slot
            for slot, (strip, _, at) in zip(self._operands.at, strips, strict=True)
        )

    def _overwrite_row(self, values: tuple[int, ...]) -> list[str]:
        elements, design, net = self._elements, self._design, self._design.net
        operands = self._operands
        writes = [net.writes[elements.parameter[value]] for value in values]
        memory = net.segments[writes[0].segment].memory
        strip, row, position = design.strips[writes[0].segment]
        kind, vector = strip.type, self._vector
        name = self._function.name("p")
        design.spare = max(design.spare, operands.slots * SIZES[kind] + ALIGN_ARRAYS)
        self._setup += [
            f"const u64 {name}_at = {self._scalars.operand(writes[0].address)};",
            f"{kind}* const {name} = {name}_at < {net.memories[memory].depth}u"
            f" ? s->{strip.name} + {name}_at * {row} + {position} : ({kind}*)s->spare;",
        ]
        data = self._narrowed(operands.column(tuple(write.data for write in writes)), net.width[writes[0].data], kind)
        on = vector.of(kind).converted(operands.column(tuple(write.enable for write in writes)), vector)
        old = f"load_{vector.of(kind)}({name} + i)"
        lines = [f"const {vector.of(kind)} {name}_on = {on};"]
        text = f"(({data} & {name}_on) | ({old} & ~{name}_on))"
        difference, target = self._function.memory_difference(memory), f"{name} + i"
        return lines + self._store(target, target, kind, text, difference, shared=True)

    def _store(
        self, target: str, old: str, kind: str, text: str, difference: str, shared: bool = False, mixed: bool = False
    ) -> list[str]:
        """Stores lanes and collects how they differ from what was in ``old``.

        ``shared``: others have their elements at spare slots; ``mixed``: the same loop computes these others.
        """
        stored = self._vector.of(kind)
        total = f"{difference}_{stored}"
        end = f"{difference} |= any_{stored}({total});"
        if end not in self._function.tail:
            self._setup.append(f"{stored} {total} = {{0}};")
            self._function.tail.append(end)
        name = self._function.name("x")
        used = self._used(kind)
        lines = [f"const {stored} {name} = {f'{text} & {used}' if used else text};"]
        new = name
        if used and shared:
            new = f"{name} | (load_{stored}({target}) & ~{used})"
            if not mixed:
                lines.append(f"const {stored} {name}_all = {new};")
                new = f"{name}_all"
        if new == name or (target == old and not mixed):
            lines.append(f"{total} |= {new} ^ load_{stored}({old});")
        else:
            lines.append(f"{total} |= ({name} ^ load_{stored}({old})) & {used};")
        self.stores.append(f"store_{stored}({target}, {new});")
        return lines

    def _narrowed(self, text: str, width: int, kind: str) -> str:
        """A value in lanes of the type it is stored as."""
        number = f"({text} & {self._vector.all(1)})" if width == 1 else text
        return self._vector.of(kind).converted(number, self._vector)

    def _used(self, kind: str) -> str:
        """A mask without the spare slots; nothing if there are none."""
        operands = self._operands
        if operands.slots == len(operands.at):
            return ""
        slots = set(operands.at)
        values = f"{{{', '.join('-1' if slot in slots else '0' for slot in range(operands.count))}}}"
        known, table = self._function.masks, f"[{operands.slots}] = {values};"
        name = known.get((kind, table))
        if name is None:
            name = known[kind, table] = self._function.name("used")
            self._setup.append(f"static const {kind} {name}{table}")
        return f"load_{self._vector.of(kind)}({name} + i)"
