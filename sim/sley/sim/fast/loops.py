"""One loop over the elements of groups that use each other's values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sley.sim.fast.commit import WriteUnit
from sley.sim.fast.expressions import BITS, literal, mask
from sley.sim.fast.gather import gather
from sley.sim.fast.guards import condition_of_loop
from sley.sim.fast.joined import lane_type
from sley.sim.fast.layout import ALIGN_ARRAYS, SIZES, Place, c_type, words
from sley.sim.fast.netlist import WORD
from sley.sim.fast.ticks import memory_of
from sley.sim.fast.vectors import LANE_BY_LANE, Vector

if TYPE_CHECKING:
    from sley.sim.fast.fragment import FragmentWriter

UNROLL = 4
"""Vectors that a long loop computes in one round."""


class LoopWriter:
    """Writes a loop of a fragment.

    What it needs from memory is brought together at the start of the fragment's function, long before it is read.

    The loop goes through *slots*, as far apart as the elements lie in memory. Spare slots between elements, and behind
    the last one in an incomplete vector, compute what nobody looks at, from whatever lies at the operands' places. They
    store zeros, or leave what is there if it belongs to somebody else; so arrays have room for whole vectors.

    At a clock's edge a loop may overwrite registers that it reads. It stores after it has computed, and it goes up or
    down such that it reads every element before it stores it. Where neither way does, it reads a copy.
    """

    def __init__(self, fragment: "FragmentWriter", groups: list[int]) -> None:
        self._fragment = fragment
        self._emitter = fragment.emitter
        self._elements = fragment.elements
        self._groups = groups
        self._at = self._elements.groups[groups[0]].slots
        self._count = self._at[-1] + 1
        self._vector = Vector.fitting(lane_type(self._elements, groups), self._count)
        self._slots = -(-self._count // self._vector.lanes) * self._vector.lanes
        self._setup = fragment.lines
        self._opening: list[str] = []
        self._stores: list[str] = []
        self._known: dict[tuple[int, ...], str] = {}
        nexts = [number for number in groups if self._elements.groups[number].op == "next"]
        self._overwritten = [self._stretch(number) for number in nexts if number in self._emitter.schedule.in_place]
        self._downwards: bool | None = None
        self._loose = self._find_loose()

    def _stretch(self, number: int) -> tuple[int, int, int]:
        """The bytes that a group of next values overwrites, first and end, and those of an element."""
        places = [self._emitter.places[register.value] for register in self._elements.registers(number)]
        first, size = min(place.offset for place in places), SIZES[places[0].type]
        return first, max(max(place.end for place in places), first + self._slots * size), size

    def write(self) -> list[str]:
        body = [line for number in self._groups for line in self._group(number)]
        self._fragment.overwritten += self._overwritten
        slots, lanes = self._slots, self._vector.lanes
        opening = f"for (int i = 0; i < {slots}; i += {lanes}) {{"
        if self._downwards and slots > lanes:
            opening = f"for (int i = {slots - lanes}; i >= 0; i -= {lanes}) {{"
        unroll = [f'_Pragma("GCC unroll {UNROLL}")'] if slots >= 2 * UNROLL * lanes else []
        return [
            f"{self._guard()}{{",
            *(f"  {line}" for line in (*self._opening, *unroll, opening)),
            *(f"    {line}" for line in (*body, *self._stores)),
            "  }",
            "}",
        ]

    def _guard(self) -> str:
        """What skips a loop whose registers all keep their contents."""
        schedule = self._emitter.schedule
        found = condition_of_loop(self._elements, self._groups, schedule.in_place, schedule.stored)
        if found is None:
            return ""
        value, holds = found
        return f"if ({'!' if holds else ''}{self._fragment.operand(value)}) "

    def _readable(self, start: int, size: int) -> bool:
        """Whether the loop can read from here on in place, elements of so many bytes, and not what it overwrote."""
        end = start + size * self._slots
        for low, high, _ in self._fragment.overwritten:
            if start < high and low < end:
                return False
        if self._slots == self._vector.lanes:
            return True
        for low, high, own in self._overwritten:
            if start >= high or low >= end or (start, size) == (low, own):
                continue
            if self._downwards is None:
                self._downwards = start < low
            if size != own or self._downwards != (start < low):
                return False
        return True

    def _group(self, number: int) -> list[str]:
        elements, vector = self._elements, self._vector
        group = elements.groups[number]
        op, width = group.op, group.width
        if op == "next":
            return self._next(group.values)
        if op == "write":
            return self._write(group.values)
        name = f"v{group.values[0]}"
        if op == "read":
            lines = [f"const {vector} {name} = {self._load(*self._read(group.values), width)};"]
        else:
            lines = self._compute(name, op, width, group.values)
        self._known[group.values] = name
        if number in self._emitter.schedule.stored:
            kind = c_type(width)
            difference = self._fragment.difference(group.values)
            lines += self._store(
                f"s->t{number} + i", f"s->t{number} + i", kind, self._narrowed(name, width, kind), difference
            )
        return lines

    def _compute(self, name: str, op: str, width: int, values: tuple[int, ...]) -> list[str]:
        elements, vector = self._elements, self._vector
        columns = list(zip(*(elements.operands[value] for value in values), strict=True))
        widths = [elements.width[column[0]] for column in columns]
        parameters = [elements.parameter[value] for value in values]
        if widths[0] > WORD:
            return self._pick(name, op, width, columns, widths[0], parameters)
        loose = values in self._loose
        if op == "sext":
            text = self._signed(columns[0], widths[0])
            if text:
                return [f"const {vector} {name} = {vector.cut(text, width, loose)};"]
        if op == "mux" and width > 1 and self._in_memory(columns[0]):
            pointer, if_0, if_1 = self._array(columns[0]), self._column(columns[1]), self._column(columns[2])
            select = f"load_{vector.of('u8')}({pointer} + i)"
            return [f"const {vector} {name} = choose_{vector}({select}, {if_1}, {if_0});"]
        texts = [self._column(column) for column in columns]
        if op in LANE_BY_LANE:
            named = []
            lines = []
            for index, text in enumerate(texts):
                lines.append(f"const {vector} {name}_{index} = {text};")
                named.append(f"{name}_{index}")
            result = vector.lane(op, width, parameters[0], named, widths)
            return [*lines, f"{vector} {name}; for (int l = 0; l < {vector.lanes}; l++) {name}[l] = {result};"]
        if op == "slice" and len(set(parameters)) > 1:
            shifts = self._load(self._table(parameters, vector.kind), vector.kind, 64)
            expression = f"(({texts[0]} >> {shifts}) & {vector.all((1 << width) - 1)})"
            expression = f"(-{expression})" if width == 1 else expression
        else:
            expression = vector.operator(op, width, parameters[0], texts, widths, loose)
        return [f"const {vector} {name} = {expression};"]

    def _signed(self, column: tuple[int, ...], width: int) -> str:
        """A column sign-extended to all bits of a lane, if there is a shorter way than with its sign."""
        elements, vector = self._elements, self._vector
        first = column[0]
        group = elements.groups[elements.group_of[first]] if first in elements.group_of else None
        if column in self._known and group and group.op == "slice" and width > 1:
            inner = tuple(elements.operands[value][0] for value in column)
            lows = {elements.parameter[value] for value in column}
            if len(lows) == 1 and elements.width[inner[0]] <= WORD and inner in self._known:
                return vector.signed_slice(self._known[inner], lows.pop(), width)
        kind = c_type(width)
        if kind != vector.kind and width == BITS[kind] and self._in_memory(column):
            other = vector.of(kind)
            return f"{vector}_signed_{other}(load_{other}({self._array(column)} + i))"
        return ""

    def _in_memory(self, column: tuple[int, ...]) -> bool:
        """Whether an operand is loaded: neither computed before, nor one for all, nor constants."""
        return column not in self._known and len(set(column)) > 1 and not any(map(self._constant, column))

    def _constant(self, value: int) -> bool:
        return self._elements.op[value] == "const"

    def _find_loose(self) -> set[tuple[int, ...]]:
        """Values whose bits above their width do not matter, because all users ignore them."""
        elements = self._elements
        exact: set[tuple[int, ...]] = set()
        for number in self._groups:
            group = elements.groups[number]
            if group.op in ("add", "sub", "mul"):
                continue
            for column in zip(*(elements.operands[value] for value in group.values), strict=True):
                ends = {elements.parameter[value] + group.width for value in group.values}
                if group.op != "slice" or max(ends) >= elements.width[column[0]]:
                    exact.add(column)
        loose = set()
        for number in self._groups:
            group = elements.groups[number]
            unread = number not in self._emitter.schedule.stored
            if group.op in ("add", "sub", "mul", "sext") and unread and group.width > 1 and group.values not in exact:
                loose.add(group.values)
        return loose

    # Into and out of memory.

    def _load(self, pointer: str, kind: str, width: int) -> str:
        """Lanes ``i`` and up of an array of type ``kind``; a mask for values of one bit."""
        other = self._vector.of(kind)
        text = self._vector.converted(f"load_{other}({pointer} + i)", other)
        return f"(-{text})" if width == 1 else text

    def _narrowed(self, text: str, width: int, kind: str) -> str:
        """A value in lanes of the type it is stored as."""
        number = f"({text} & {self._vector.all(1)})" if width == 1 else text
        return self._vector.of(kind).converted(number, self._vector)

    def _store(
        self, target: str, old: str, kind: str, text: str, difference: str, shared: bool = False, mixed: bool = False
    ) -> list[str]:
        """Stores lanes and collects how they differ from what was in ``old``.

        ``shared``: others have their elements at spare slots; ``mixed``: the same loop computes these others.
        """
        stored = self._vector.of(kind)
        total = f"{difference}_{stored}"
        end = f"{difference} |= any_{stored}({total});"
        if end not in self._fragment.tail:
            self._setup.append(f"{stored} {total} = {{0}};")
            self._fragment.tail.append(end)
        name = self._fragment.name("x")
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
        self._stores.append(f"store_{stored}({target}, {new});")
        return lines

    def _used(self, kind: str) -> str:
        """A mask without the spare slots; nothing if there are none."""
        if self._slots == len(self._at):
            return ""
        slots = set(self._at)
        values = f"{{{', '.join('-1' if slot in slots else '0' for slot in range(self._count))}}}"
        known, table = self._fragment.masks, f"[{self._slots}] = {values};"
        name = known.get((kind, table))
        if name is None:
            name = known[kind, table] = self._fragment.name("used")
            self._setup.append(f"static const {kind} {name}{table}")
        return f"load_{self._vector.of(kind)}({name} + i)"

    def _by_slot(self, numbers: Sequence[int]) -> list[int]:
        """One number for every slot, from those of the elements."""
        result = [0] * self._count
        for slot, number in zip(self._at, numbers, strict=True):
            result[slot] = number
        return result

    def _table(self, numbers: Sequence[int], kind: str) -> str:
        name = self._fragment.name("k")
        values = ", ".join(literal(number, 64 if kind == "u64" else 32) for number in self._by_slot(numbers))
        self._setup.append(f"static const {kind} {name}[{self._slots}] = {{{values}}};")
        return name

    # Operands.

    def _column(self, values: tuple[int, ...]) -> str:
        """An operand of all elements, as lanes ``i`` and up."""
        known = self._known.get(values)
        if known is None:
            known = self._known[values] = self._make_column(values)
        return known

    def _make_column(self, values: tuple[int, ...]) -> str:
        elements, vector = self._elements, self._vector
        first, width = values[0], elements.width[values[0]]
        if all(value == first for value in values):
            number = elements.parameter[first]
            if elements.op[first] == "const":
                return vector.all((1 << vector.bits) - 1 if width == 1 and number else number)
            name = self._fragment.name("h")
            self._setup.append(f"const {vector.kind} {name}_0 = {self._fragment.operand(first)};")
            self._opening.append(f"const {vector} {name} = ({vector}){{0}} {'-' if width == 1 else '+'} {name}_0;")
            return name
        kind = c_type(width)
        if all(map(self._constant, values)):
            return self._load(self._table([elements.parameter[value] for value in values], kind), kind, width)
        return self._load(self._array(values), kind, width)

    def _array(self, values: tuple[int, ...]) -> str:
        """Address of the values side by side: in place if they lie so, else of a copy."""
        known = self._fragment.gathered.get((values, self._at))
        if known:
            return known
        kind = c_type(self._elements.width[values[0]])
        size = SIZES[kind]
        places = self._places(values, kind)
        cells = list(zip(self._at, places, values, strict=True))
        first = places[0]
        if first and first.type == kind and self._readable(first.offset, size):
            ways = {place and (place.type, place.offset - size * slot) for slot, place, _ in cells}
            if len(ways) == 1:
                return f"((const {kind}*)AT({first.offset}))"
        name = self._fragment.gathered[values, self._at] = self._fragment.name("g")
        self._setup += gather(name, kind, cells, self._slots, self._fragment.operand)
        return name

    def _places(self, values: tuple[int, ...], kind: str) -> list[Place | None]:
        """Where the values are, if they are in memory."""
        parts = self._elements.views.get(values)
        if not parts:
            return [self._place(value) for value in values]
        first = self._place(parts[0])
        assert first is not None
        return [Place("", -1, kind, first.offset + SIZES[kind] * number) for number in range(len(values))]

    def _place(self, value: int) -> Place | None:
        elements, places = self._elements, self._emitter.places
        if value in elements.aliases:
            outer = places.get(elements.operands[value][0])
            kind = c_type(elements.width[value])
            return outer and Place("", -1, kind, outer.offset + elements.parameter[value] // 8)
        return places.get(value)

    def _pick(
        self, name: str, op: str, width: int, columns: list[tuple[int, ...]], size: int, parameters: list[int]
    ) -> list[str]:
        """Pieces of one wide value for all elements."""
        vector = self._vector
        wide = self._fragment.operand(columns[0][0])
        step = (parameters[1] - parameters[0]) // (self._at[1] - self._at[0])
        regular = all(low == parameters[0] + step * slot for slot, low in zip(self._at, parameters, strict=True))
        if op == "slice" and regular and step == width and width in BITS.values() and parameters[0] % width == 0:
            pointer = f"((const u{width}*){wide} + {parameters[0] // width})"
            return [f"const {vector} {name} = {self._load(pointer, f'u{width}', width)};"]
        if op == "pick" and regular and step == width and width in BITS.values() and len(set(columns[1])) == 1:
            shifted = self._fragment.name("g")
            low = f"(u64){self._fragment.operand(columns[1][0])} + {parameters[0]}"
            self._setup.append(f"u64 {shifted}[{words(self._slots * width)}];")
            self._setup.append(f"w_slice({shifted}, {words(self._count * width) * 64}, {wide}, {size}, {low});")
            return [f"const {vector} {name} = {self._load(f'((const u{width}*){shifted})', f'u{width}', width)};"]
        if op == "pick" and width == 8 and set(parameters) == {0} and self._bytes_from_memory(columns[1]):
            chosen = self._fragment.name("g")
            self._setup.append(f"u8 {chosen}[{self._slots}];")
            self._setup.append(f"w_bytes({chosen}, {wide}, {size}, {self._array(columns[1])}, {self._slots});")
            return [f"const {vector} {name} = {self._load(chosen, 'u8', 8)};"]
        low = f"{self._table(parameters, 'u32')}[i + l]"
        lines = []
        text = f"(w_pick({wide}, {size}, {low}) & {mask(width)})"
        if op == "pick":
            amount = self._fragment.name("y")
            column = self._column(columns[1])
            amount_width = self._elements.width[columns[1][0]]
            lines.append(f"const {vector} {amount} = {column};")
            by = f"({amount}[l] & 1)" if amount_width == 1 else f"{amount}[l]"
            text = f"(w_pick({wide}, {size}, (u64){by} + {low}) & {mask(width)})"
        if width == 1:
            text = f"(-({vector.kind}){text})"
        return [*lines, f"{vector} {name}; for (int l = 0; l < {vector.lanes}; l++) {name}[l] = {text};"]

    def _bytes_from_memory(self, amounts: tuple[int, ...]) -> bool:
        in_memory = c_type(self._elements.width[amounts[0]]) == "u16" and amounts not in self._known
        return in_memory and self._whole_bytes(amounts)

    def _whole_bytes(self, amounts: tuple[int, ...]) -> bool:
        """Whether all these numbers are multiples of 8."""
        elements = self._elements
        for amount in amounts:
            if elements.op[amount] == "const" and elements.parameter[amount] % 8 == 0:
                continue
            low = elements.operands[amount][:1]
            if elements.op[amount] != "concat" or elements.op[low[0]] != "const":
                return False
            if elements.width[low[0]] < 3 or elements.parameter[low[0]] % 8:
                return False
        return True

    def _read(self, values: tuple[int, ...]) -> tuple[str, str]:
        """Segments of one row of a memory, side by side: address and type."""
        elements, net = self._elements, self._emitter.net
        segments = [elements.parameter[value] for value in values]
        number = net.segments[segments[0]].memory
        depth = net.memories[number].depth
        (address_value,) = elements.operands[values[0]]
        address = self._fragment.operand(address_value)
        strips = [self._emitter.strips[segment] for segment in segments]
        strip, row, position = strips[0]
        checked = depth < 1 << elements.width[address_value]
        name = self._fragment.name("p")
        regular = all(
            other.name == strip.name and at == position + slot
            for slot, (other, _, at) in zip(self._at, strips, strict=True)
        )
        kind = c_type(elements.width[values[0]])
        inside = f"s->{strip.name} + (u64){address} * {row} + {position}"
        if regular:
            if not checked:
                self._setup.append(f"const {kind}* const {name} = {inside};")
                return name, kind
            zero = self._fragment.name("z")
            self._setup.append(f"static const {kind} {zero}[{self._slots}];")
            self._setup.append(f"const {kind}* const {name} = {address} < {depth}u ? {inside} : {zero};")
            return name, kind
        self._setup.append(f"{kind} {name}[{self._slots}] = {{0}};")
        copies = " ".join(
            f"{name}[{slot}] = s->{other.name}[(u64){address} * {size} + {at}];"
            for slot, (other, size, at) in zip(self._at, strips, strict=True)
        )
        self._setup.append(f"{f'if ({address} < {depth}u) ' if checked else ''}{{ {copies} }}")
        return name, kind

    # Sinks.

    def _next(self, values: tuple[int, ...]) -> list[str]:
        emitter, elements = self._emitter, self._elements
        registers = [emitter.net.registers[elements.parameter[value]] for value in values]
        if registers[0].clock < 0 or all(register.next == register.value for register in registers):
            return []
        in_place = self._elements.group_of[values[0]] in emitter.schedule.in_place
        unit = None if in_place else self._fragment.commit_unit()
        difference = self._fragment.difference([register.value for register in registers], unit)
        width = registers[0].width
        column = tuple(register.next for register in registers)
        places = [emitter.places[register.value] for register in registers]
        first, count = places[0], len(values)
        kind = first.type
        if self._in_memory(column):  # a copy
            text = f"load_{self._vector.of(kind)}({self._array(column)} + i)"
        else:
            text = self._narrowed(self._column(column), width, kind)
        at = zip(self._at, places, strict=True)
        if all(place.name == first.name and place.index == first.index + slot for slot, place in at):
            old = f"s->{first.name} + {first.index}"
            target = old if in_place else f"s->n{first.name[1:]} + {first.index}"
            array, index = elements.stored[registers[0].value]
            own = {register.value for register in registers}
            shared = any(
                value >= 0 and value not in own for value in elements.arrays[array][index : index + self._slots]
            )
            low, high, _ = self._stretch(elements.group_of[values[0]])
            others = (number for number in self._groups if elements.groups[number].op == "next")
            stretches = [self._stretch(number) for number in others if elements.groups[number].values != values]
            mixed = any(start < high and low < end for start, end, _ in stretches)
            if unit and shared and count < self._count:
                unit.lines += [f"{place} = {str(place).replace('s->r', 's->n', 1)};" for place in places]
            elif unit:
                unit.lines.append(f"memcpy({old}, {target}, {self._count * SIZES[kind]});")
            return self._store(f"{target} + i", f"{old} + i", kind, text, difference, shared, mixed)
        table = self._table([place.offset for place in places], "u32")
        shift = 0 if in_place else emitter.next_shift
        if unit:
            unit.lines.append(
                f"{{ static const u32 k[] = {{{', '.join(str(place.offset) for place in places)}}}; "
                f"for (int j = 0; j < {count}; j++) *({kind}*)AT(k[j]) = *({kind}*)AT(k[j] + {shift}); }}"
            )
        name = self._fragment.name("x")
        self._stores += [
            f"for (int l = 0; l < {self._vector.lanes} && i + l < {count}; l++) {{",
            f"  {difference} |= {name}[l] ^ *({kind}*)AT({table}[i + l]);",
            f"  *({kind}*)AT({table}[i + l] + {shift}) = {name}[l];",
            "}",
        ]
        return [f"const {self._vector.of(kind)} {name} = {text};"]

    def _write(self, values: tuple[int, ...]) -> list[str]:
        emitter, elements, net = self._emitter, self._elements, self._emitter.net
        writes = [net.writes[elements.parameter[value]] for value in values]
        if writes[0].clock < 0:
            return []
        if self._row(values):
            return self._overwrite_row(values)
        unit: WriteUnit = self._fragment.write_unit(elements.parameter[values[0]], len(values))
        number, count = unit.number, len(values)
        self._setup.append(f"s->wa{number} = {self._fragment.operand(writes[0].address)};")
        data_width, enable_width = net.width[writes[0].data], net.width[writes[0].enable]
        kind, enable_kind = c_type(data_width), c_type(enable_width)
        data = self._narrowed(self._column(tuple(write.data for write in writes)), data_width, kind)
        column = self._column(tuple(write.enable for write in writes))
        enable = self._narrowed(column, enable_width, enable_kind)
        used = self._used(enable_kind)
        enable = f"{enable} & {used}" if used else enable
        strips = [emitter.strips[write.segment] for write in writes]
        unit.copy(strips, count, kind, net.memories[unit.memory].depth, enable_width > 1)
        total, vector = f"any{number}", self._vector.of(enable_kind)
        self._setup.append(f"{vector} {total} = {{0}};")
        self._fragment.tail.append(unit.pending(f"any_{vector}({total})"))
        name = self._fragment.name("y")
        return [
            f"const {vector} {name} = {enable};",
            f"store_{self._vector.of(kind)}(s->wd{number} + i, {data});",
            f"store_{vector}(s->we{number} + i, {name}); {total} |= {name};",
        ]

    def _row(self, values: tuple[int, ...]) -> bool:
        """Whether these writes may overwrite a row at once, and lie side by side in it."""
        elements, emitter = self._elements, self._emitter
        number = elements.group_of[values[0]]
        if number not in emitter.schedule.in_place:
            return False
        memory = memory_of(elements, number)
        if any(elements.groups[n].op == "read" and memory_of(elements, n) == memory for n in self._groups):
            return False
        strips = [emitter.strips[emitter.net.writes[elements.parameter[value]].segment] for value in values]
        first, _, position = strips[0]
        return all(
            strip.name == first.name and at == position + slot
            for slot, (strip, _, at) in zip(self._at, strips, strict=True)
        )

    def _overwrite_row(self, values: tuple[int, ...]) -> list[str]:
        elements, emitter, net = self._elements, self._emitter, self._emitter.net
        writes = [net.writes[elements.parameter[value]] for value in values]
        memory = net.segments[writes[0].segment].memory
        strip, row, position = emitter.strips[writes[0].segment]
        kind, vector = strip.type, self._vector
        name = self._fragment.name("p")
        emitter.spare = max(emitter.spare, self._slots * SIZES[kind] + ALIGN_ARRAYS)
        self._setup += [
            f"const u64 {name}_at = {self._fragment.operand(writes[0].address)};",
            f"{kind}* const {name} = {name}_at < {net.memories[memory].depth}u"
            f" ? s->{strip.name} + {name}_at * {row} + {position} : ({kind}*)s->spare;",
        ]
        data = self._narrowed(self._column(tuple(write.data for write in writes)), net.width[writes[0].data], kind)
        on = vector.of(kind).converted(self._column(tuple(write.enable for write in writes)), vector)
        old = f"load_{vector.of(kind)}({name} + i)"
        lines = [f"const {vector.of(kind)} {name}_on = {on};"]
        text = f"(({data} & {name}_on) | ({old} & ~{name}_on))"
        difference, target = self._fragment.memory_difference(memory), f"{name} + i"
        return lines + self._store(target, target, kind, text, difference, shared=True)
