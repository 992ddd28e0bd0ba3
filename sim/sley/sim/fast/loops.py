"""One loop over the elements of groups that use each other's values."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sley.sim.fast.commit import CommitUnit, WriteUnit
from sley.sim.fast.expressions import literal, mask
from sley.sim.fast.layout import SIZES, Place, c_type, words
from sley.sim.fast.netlist import WORD
from sley.sim.fast.vectors import LANE_BY_LANE, Vector

if TYPE_CHECKING:
    from sley.sim.fast.fragment import FragmentWriter

SHORT_RUN = 4
SIZES_IN_BITS = (8, 16, 32, 64)


class LoopWriter:
    """Writes a loop of a fragment.

    What it needs from memory is brought together at the start of the fragment's function, long before it is read.

    A last, incomplete vector of elements has *spare* lanes. They compute what nobody looks at, from whatever lies behind
    the operands in memory, and store zeros; so arrays of elements have room for whole vectors.

    At a clock's edge a loop may overwrite registers that it reads. It stores after it has computed, and it goes up or
    down such that it reads every element before it stores it. Where neither way does, it reads a copy.
    """

    def __init__(self, fragment: "FragmentWriter", groups: list[int]) -> None:
        self._fragment = fragment
        self._emitter = fragment.emitter
        self._elements = fragment.elements
        self._groups = groups
        self._count = fragment.fragment.elements
        self._vector = Vector.fitting(self._lane_type(), self._count)
        self._slots = -(-self._count // self._vector.lanes) * self._vector.lanes
        self._setup = fragment.lines
        self._opening: list[str] = []
        self._stores: list[str] = []
        self._known: dict[tuple[int, ...], str] = {}
        self._overwritten = [self._stretch(number) for number in groups if number in self._emitter.schedule.in_place]
        self._downwards: bool | None = None

    def _lane_type(self) -> str:
        """The smallest type for all values of the loop."""
        elements = self._elements
        widest = 1
        for number in self._groups:
            group = elements.groups[number]
            operands = elements.operands[group.values[0]]
            own = [elements.width[operand] for operand in operands if elements.width[operand] <= WORD]
            if group.op in ("read", "write"):
                own = own[1:]
            widest = max(widest, group.width, *own, 1)
            if group.op in LANE_BY_LANE:
                widest = max(widest, 32)
        return c_type(widest)

    def _stretch(self, number: int) -> tuple[int, int, int]:
        """The bytes that a group of next values overwrites, first and end, and those of an element."""
        elements, emitter = self._elements, self._emitter
        registers = [
            emitter.net.registers[elements.parameter[value]].value for value in elements.groups[number].values
        ]
        places = [emitter.places[register] for register in registers]
        first, size = min(place.offset for place in places), SIZES[places[0].type]
        return first, max(max(place.end for place in places), first + self._slots * size), size

    def write(self) -> list[str]:
        body = [line for number in self._groups for line in self._group(number)]
        self._fragment.overwritten += self._overwritten
        slots, lanes = self._slots, self._vector.lanes
        opening = f"for (int i = 0; i < {slots}; i += {lanes}) {{"
        if self._downwards and slots > lanes:
            opening = f"for (int i = {slots - lanes}; i >= 0; i -= {lanes}) {{"
        return [
            "{",
            *(f"  {line}" for line in (*self._opening, opening)),
            *(f"    {line}" for line in (*body, *self._stores)),
            "  }",
            "}",
        ]

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
            difference = self._fragment.difference(-1, group.values)
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
            expression = vector.operator(op, width, parameters[0], texts, widths)
        return [f"const {vector} {name} = {expression};"]

    # Into and out of memory.

    def _load(self, pointer: str, kind: str, width: int) -> str:
        """Lanes ``i`` and up of an array of type ``kind``; a mask for values of one bit."""
        other = self._vector.of(kind)
        text = f"load_{other}({pointer} + i)"
        if kind != self._vector.kind:
            text = f"__builtin_convertvector({text}, {self._vector})"
        return f"(-{text})" if width == 1 else text

    def _narrowed(self, text: str, width: int, kind: str) -> str:
        """A value in lanes of the type it is stored as."""
        number = f"({text} & {self._vector.all(1)})" if width == 1 else text
        return number if kind == self._vector.kind else f"__builtin_convertvector({number}, {self._vector.of(kind)})"

    def _store(
        self, target: str, old: str, kind: str, text: str, difference: str, followed: bool = False
    ) -> list[str]:
        """Stores lanes and collects how they differ from what was in ``old``; ``followed``: by elements of others."""
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
        if used and followed:
            lines.append(f"const {stored} {name}_all = {name} | (load_{stored}({target}) & ~{used});")
            new = f"{name}_all"
            lines.append(f"{total} |= ({name} ^ load_{stored}({old})) & {used};")
        else:
            lines.append(f"{total} |= {name} ^ load_{stored}({old});")
        self._stores.append(f"store_{stored}({target}, {new});")
        return lines

    def _used(self, kind: str) -> str:
        """A mask without the spare lanes; nothing if there are none."""
        if self._slots == self._count:
            return ""
        name = f"used_{kind}x{self._count}_{self._slots}"
        line = f"static const {kind} {name}[{self._slots}] = {{{', '.join(['-1'] * self._count)}}};"
        if line not in self._setup:
            self._setup.append(line)
        return f"load_{self._vector.of(kind)}({name} + i)"

    def _table(self, numbers: Sequence[int], kind: str) -> str:
        name = self._fragment.name("k")
        values = ", ".join(literal(number, 64 if kind == "u64" else 32) for number in numbers)
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
        if all(elements.op[value] == "const" for value in values):
            return self._load(self._table([elements.parameter[value] for value in values], kind), kind, width)
        return self._load(self._array(values), kind, width)

    def _array(self, values: tuple[int, ...]) -> str:
        """Address of the values side by side: in place if they lie so, else of a copy."""
        known = self._fragment.gathered.get(values)
        if known:
            return known
        parts = self._elements.views.get(values)
        kind = c_type(self._elements.width[values[0]])
        size = SIZES[kind]
        if parts:
            place = self._place(parts[0])
            assert place is not None
            start = place.offset
        else:
            places = [self._place(value) for value in values]
            first = places[0]
            start = -1
            if first and all(
                place and place.type == kind and place.offset == first.offset + size * at
                for at, place in enumerate(places)
            ):
                start = first.offset
        if start >= 0 and self._readable(start, size):
            return f"((const {kind}*)AT({start}))"
        name = self._fragment.gathered[values] = self._fragment.name("g")
        self._setup.append(f"{kind} {name}[{self._slots}];")
        if start >= 0:
            self._setup.append(f"memcpy({name}, AT({start}), {size * len(values)});")
        else:
            self._setup += self._shifted(name, kind, values, places) or self._runs(name, kind, values, places)
        return name

    def _shifted(self, name: str, kind: str, values: tuple[int, ...], places: list[Place | None]) -> list[str]:
        """Copies one stretch of memory that has most of the values in place, and then the others over it.

        So come the values of an element's neighbour, which at the edges of an array are something else.
        """
        size = SIZES[kind]
        shifts = [place.offset - size * at if place and place.type == kind else None for at, place in enumerate(places)]
        counts = Counter(shift for shift in shifts if shift is not None)
        if not counts:
            return []
        ((shift, count),) = counts.most_common(1)
        if shift is None or count < len(values) / 2:
            return []
        inside = [at for at, other in enumerate(shifts) if other == shift]
        first, last = inside[0], inside[-1]
        start = shift + size * first
        lines = [f"memcpy({name} + {first}, AT({start}), {size * (last + 1 - first)});"]
        return lines + self._singles(name, values, places, [at for at, other in enumerate(shifts) if other != shift])

    def _singles(
        self, name: str, values: tuple[int, ...], places: list[Place | None], positions: list[int]
    ) -> list[str]:
        """Copies values one by one, in a loop where they lie at equal distances."""
        lines = []
        while positions:
            run = self._progression(positions, places)
            if len(run) >= SHORT_RUN:
                place, second = places[run[0]], places[run[1]]
                assert place is not None
                assert second is not None
                step = (second.offset - place.offset) // SIZES[place.type]
                target = f"{name}[{run[0]} + {run[1] - run[0]} * j]"
                lines.append(f"for (int j = 0; j < {len(run)}; j++) {target} = (&{place})[{step} * j];")
            else:
                run = positions[:1]
                at = run[0]
                lines.append(f"{name}[{at}] = {places[at] or self._fragment.operand(values[at])};")
            positions = positions[len(run) :]
        return lines

    def _progression(self, positions: list[int], places: list[Place | None]) -> list[int]:
        """The first positions, as long as they and what is stored there lie at equal distances."""
        found = positions[:2]
        if len(found) < 2:
            return found
        first, second = places[found[0]], places[found[1]]
        if first is None or second is None or first.type != second.type:
            return found[:1]
        step, distance = found[1] - found[0], second.offset - first.offset
        if distance % SIZES[first.type]:
            return found[:1]
        for position in positions[2:]:
            place = places[position]
            count = len(found)
            if place is None or place.type != first.type or place.offset != first.offset + distance * count:
                break
            if position != found[0] + step * count:
                break
            found.append(position)
        return found

    def _runs(self, name: str, kind: str, values: tuple[int, ...], places: list[Place | None]) -> list[str]:
        """Copies neighbours together; runs of one length at equal distances in a loop."""
        size = SIZES[kind]
        runs: list[tuple[int, int]] = []
        singles: list[int] = []
        lines: list[str] = []
        position = 0
        while position < len(values):
            first, count = places[position], 1
            while position + count < len(values) and values[position + count] == values[position]:
                count += 1
            if count >= SHORT_RUN:
                text = self._fragment.operand(values[position])
                lines.append(f"for (unsigned j = 0; j < {count}; j++) {name}[{position} + j] = {text};")
                position += count
                continue
            count = 1
            while first and first.type == kind and position + count < len(values):
                place = places[position + count]
                if place is None or place.type != kind or place.offset != first.offset + size * count:
                    break
                count += 1
            if count > 1:
                runs.append((position, count))
            else:
                singles.append(position)
            position += count
        while runs:
            (start, count), number = runs[0], 1
            place = places[start]
            assert place is not None
            step = distance = 0
            if len(runs) > 1:
                second = places[runs[1][0]]
                assert second is not None
                step, distance = runs[1][0] - start, second.offset - place.offset
                while number < len(runs) and runs[number] == (start + step * number, count):
                    other = places[runs[number][0]]
                    if other is None or other.offset != place.offset + distance * number:
                        break
                    number += 1
            if number >= SHORT_RUN:
                target, source = f"{name} + {start} + {step} * j", f"AT({place.offset} + {distance} * j)"
                lines.append(f"for (int j = 0; j < {number}; j++) memcpy({target}, {source}, {count * size});")
            else:
                number = 1
                lines.append(f"memcpy({name} + {start}, &{place}, {count * size});")
            runs = runs[number:]
        return lines + self._singles(name, values, places, singles)

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
        step = parameters[1] - parameters[0]
        regular = all(low == parameters[0] + step * index for index, low in enumerate(parameters))
        if op == "slice" and regular and step == width and width in SIZES_IN_BITS and parameters[0] % width == 0:
            pointer = f"((const u{width}*){wide} + {parameters[0] // width})"
            return [f"const {vector} {name} = {self._load(pointer, f'u{width}', width)};"]
        if op == "pick" and regular and step == width and width in SIZES_IN_BITS and len(set(columns[1])) == 1:
            shifted = self._fragment.name("g")
            low = f"(u64){self._fragment.operand(columns[1][0])} + {parameters[0]}"
            self._setup.append(f"u64 {shifted}[{words(self._slots * width)}];")
            self._setup.append(f"w_slice({shifted}, {words(len(columns[1]) * width) * 64}, {wide}, {size}, {low});")
            return [f"const {vector} {name} = {self._load(f'((const u{width}*){shifted})', f'u{width}', width)};"]
        if op == "pick" and width == 8 and set(parameters) == {0} and self._whole_bytes(columns[1]):
            if c_type(self._elements.width[columns[1][0]]) == "u16" and columns[1] not in self._known:
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
        self._emitter.memory_readers[number].add(self._fragment.index)
        (address_value,) = elements.operands[values[0]]
        address = self._fragment.operand(address_value)
        strips = [self._emitter.strips[segment] for segment in segments]
        strip, row, position = strips[0]
        checked = depth < 1 << elements.width[address_value]
        name = self._fragment.name("p")
        regular = all(
            other.name == strip.name and at == position + index for index, (other, _, at) in enumerate(strips)
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
            f"{name}[{index}] = s->{other.name}[(u64){address} * {size} + {at}];"
            for index, (other, size, at) in enumerate(strips)
        )
        self._setup.append(f"{f'if ({address} < {depth}u) ' if checked else ''}{{ {copies} }}")
        return name, kind

    # Sinks.

    def _next(self, values: tuple[int, ...]) -> list[str]:
        emitter, elements = self._emitter, self._elements
        registers = [emitter.net.registers[elements.parameter[value]] for value in values]
        if registers[0].clock < 0:
            return []
        in_place = self._elements.group_of[values[0]] in emitter.schedule.in_place
        clock = -1 if in_place else registers[0].clock
        difference = self._fragment.difference(clock, [register.value for register in registers])
        width = registers[0].width
        column = self._column(tuple(register.next for register in registers))
        places = [emitter.places[register.value] for register in registers]
        first, count = places[0], len(values)
        kind = first.type
        text = self._narrowed(column, width, kind)
        unit: CommitUnit | None = None if in_place else self._fragment.commit_unit(clock)
        if all(place.name == first.name and place.index == first.index + at for at, place in enumerate(places)):
            old = f"s->{first.name} + {first.index}"
            target = old if in_place else f"s->n{first.name[1:]} + {first.index}"
            if unit:
                unit.lines.append(f"memcpy({old}, {target}, {count * SIZES[kind]});")
            array, index = elements.stored[registers[0].value]
            followed = index + count < len(elements.arrays[array])
            return self._store(f"{target} + i", f"{old} + i", kind, text, difference, followed)
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
