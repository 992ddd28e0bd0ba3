"""Where a loop's operands come from: memory that it goes through, copies, tables, rows, one value for all."""

from collections.abc import Sequence

from sley.sim.fast.emit.expressions import literal
from sley.sim.fast.emit.gather import gather
from sley.sim.fast.emit.layout import Place
from sley.sim.fast.emit.scalars import Scalars
from sley.sim.fast.emit.vectors import Vector
from sley.sim.fast.optimise.machine_types import BITS, SIZES, c_type
from sley.sim.fast.read.netlist import WORD
from sley.sim.fast.schedule.loops import lane_type, narrows


class LoopOperands:
    """The slots of a loop, and what it reads in them.

    A *column* is an operand of all elements. What it needs from memory is brought together at the start of the
    fragment's function, long before it is read.

    At a clock's edge a loop may overwrite registers that it reads. It stores after it has computed, and it goes up or
    down such that it reads every element before it stores it. Where neither direction does, it reads a copy.
    """

    def __init__(self, scalars: Scalars, groups: list[int]) -> None:
        self._scalars = scalars
        self._function = scalars.function
        self._design = scalars.function.design
        self._elements = scalars.function.elements
        self.at = self._elements.groups[groups[0]].slots
        """The slots of the elements."""
        self.count = self.at[-1] + 1
        kind = lane_type(self._elements, groups)
        narrowed = any(narrows(self._elements, number, BITS[kind]) for number in groups)
        self.vector = Vector.fitting(kind, self.count, WORD if narrowed else 0)
        self.slots = -(-self.count // self.vector.lanes) * self.vector.lanes
        """All of them, in whole vectors."""
        self._setup = scalars.function.lines
        self.opening: list[str] = []
        """Statements just before the loop."""
        self.known: dict[tuple[int, ...], str] = {}
        """Columns that have a name or an expression."""
        nexts = [number for number in groups if self._elements.groups[number].op == "next"]
        self.overwritten = [self.stretch(number) for number in nexts if number in self._design.schedule.in_place]
        """Bytes of the registers that this loop overwrites."""
        self.downwards: bool | None = None
        """Whether the loop goes from its last slot to the first; None as long as either direction does."""

    def stretch(self, number: int) -> tuple[int, int, int]:
        """The bytes that a group of next values overwrites, first and end, and those of an element."""
        places = [self._design.places[register.value] for register in self._elements.registers(number)]
        first, size = min(place.offset for place in places), SIZES[places[0].type]
        return first, max(max(place.end for place in places), first + self.slots * size), size

    def _readable(self, start: int, size: int) -> bool:
        """Whether the loop can read from here on in place, elements of so many bytes, and not what it overwrote."""
        end = start + size * self.slots
        for low, high, _ in self._function.overwritten:
            if start < high and low < end:
                return False
        if self.slots == self.vector.lanes:
            return True
        for low, high, own in self.overwritten:
            if start >= high or low >= end or (start, size) == (low, own):
                continue
            if self.downwards is None:
                self.downwards = start < low
            if size != own or self.downwards != (start < low):
                return False
        return True

    def in_memory(self, column: tuple[int, ...]) -> bool:
        """Whether an operand is loaded: neither computed before, nor one for all, nor constants."""
        return column not in self.known and len(set(column)) > 1 and not any(map(self._constant, column))

    def _constant(self, value: int) -> bool:
        return self._elements.op[value] == "const"

    def column(self, values: tuple[int, ...]) -> str:
        """An operand of all elements, as lanes ``i`` and up."""
        known = self.known.get(values)
        if known is None:
            known = self.known[values] = self._make_column(values)
        return known

    def _make_column(self, values: tuple[int, ...]) -> str:
        elements, vector = self._elements, self.vector
        first, width = values[0], elements.width[values[0]]
        if all(value == first for value in values):
            number = elements.parameter[first]
            if elements.op[first] == "const":
                return vector.all((1 << vector.bits) - 1 if width == 1 and number else number)
            name = self._function.name("h")
            self._setup.append(f"const {vector.kind} {name}_0 = {self._scalars.operand(first)};")
            self.opening.append(f"const {vector} {name} = ({vector}){{0}} {'-' if width == 1 else '+'} {name}_0;")
            return name
        kind = c_type(width)
        if all(map(self._constant, values)):
            return self.load(self.table([elements.parameter[value] for value in values], kind), kind, width)
        return self.load(self.array(values), kind, width)

    def wide_column(self, values: tuple[int, ...]) -> str:
        """An operand of more bits than a lane has, in lanes of 64."""
        wide = self.vector.of("u64")
        if any(value != values[0] for value in values):
            kind = c_type(self._elements.width[values[0]])
            return wide.converted(f"load_{wide.of(kind)}({self.array(values)} + i)", wide.of(kind))
        name = self._function.name("h")
        self._setup.append(f"const u64 {name}_0 = {self._scalars.operand(values[0])};")
        return f"(({wide}){{0}} + {name}_0)"

    def load(self, pointer: str, kind: str, width: int) -> str:
        """Lanes ``i`` and up of an array of type ``kind``; a mask for values of one bit."""
        other = self.vector.of(kind)
        text = self.vector.converted(f"load_{other}({pointer} + i)", other)
        return f"(-{text})" if width == 1 else text

    def table(self, numbers: Sequence[int], kind: str) -> str:
        """Name of an array of constants, one for each element."""
        name = self._function.name("k")
        values = ", ".join(literal(number, 64 if kind == "u64" else 32) for number in self._by_slot(numbers))
        self._setup.append(f"static const {kind} {name}[{self.slots}] = {{{values}}};")
        return name

    def _by_slot(self, numbers: Sequence[int]) -> list[int]:
        """One number for every slot, from those of the elements."""
        result = [0] * self.count
        for slot, number in zip(self.at, numbers, strict=True):
            result[slot] = number
        return result

    def array(self, values: tuple[int, ...]) -> str:
        """Address of the values side by side: in place if they lie so, else of a copy."""
        known = self._function.gathered.get((values, self.at))
        if known:
            return known
        kind = c_type(self._elements.width[values[0]])
        size = SIZES[kind]
        places = self._places(values, kind)
        cells = list(zip(self.at, places, values, strict=True))
        first = places[0]
        if first and first.type == kind and self._readable(first.offset, size):
            origins = {place and (place.type, place.offset - size * slot) for slot, place, _ in cells}
            if len(origins) == 1:
                return f"((const {kind}*)AT({first.offset}))"
        name = self._function.gathered[values, self.at] = self._function.name("g")
        self._setup += gather(name, kind, cells, self.slots, self._scalars.operand)
        return name

    def _places(self, values: tuple[int, ...], kind: str) -> list[Place | None]:
        """Where the values are, if they are in memory."""
        parts = self._elements.views.get(values)
        if not parts:
            return [self._place(value) for value in values]
        each = len(parts) // len(values)
        return [self._whole(parts[number * each :][:each], kind) for number in range(len(values))]

    def _whole(self, parts: tuple[int, ...], kind: str) -> Place | None:
        """Where a value is whose parts lie side by side; elements may have spare slots between them."""
        places = [self._place(part) for part in parts]
        first = places[0]
        size = SIZES[kind] // len(parts)
        if first is None or any(p is None or p.offset != first.offset + size * k for k, p in enumerate(places)):
            return None
        return Place("", -1, kind, first.offset)

    def _place(self, value: int) -> Place | None:
        elements, places = self._elements, self._design.places
        if value in elements.aliases:
            outer = places.get(elements.operands[value][0])
            kind = c_type(elements.width[value])
            return outer and Place("", -1, kind, outer.offset + elements.parameter[value] // 8)
        return places.get(value)

    def row(self, values: tuple[int, ...]) -> tuple[str, str]:
        """Segments of one row of a memory, side by side: address and type."""
        elements, net = self._elements, self._design.net
        segments = [elements.parameter[value] for value in values]
        number = net.segments[segments[0]].memory
        depth = net.memories[number].depth
        (address_value,) = elements.operands[values[0]]
        address = self._scalars.operand(address_value)
        strips = [self._design.strips[segment] for segment in segments]
        strip, row, position = strips[0]
        checked = depth < 1 << elements.width[address_value]
        name = self._function.name("p")
        regular = all(
            other.name == strip.name and at == position + slot
            for slot, (other, _, at) in zip(self.at, strips, strict=True)
        )
        kind = c_type(elements.width[values[0]])
        inside = f"s->{strip.name} + (u64){address} * {row} + {position}"
        if regular:
            if not checked:
                self._setup.append(f"const {kind}* const {name} = {inside};")
                return name, kind
            zero = self._function.name("z")
            self._setup.append(f"static const {kind} {zero}[{self.slots}];")
            self._setup.append(f"const {kind}* const {name} = {address} < {depth}u ? {inside} : {zero};")
            return name, kind
        self._setup.append(f"{kind} {name}[{self.slots}] = {{0}};")
        copies = " ".join(
            f"{name}[{slot}] = s->{other.name}[(u64){address} * {size} + {at}];"
            for slot, (other, size, at) in zip(self.at, strips, strict=True)
        )
        self._setup.append(f"{f'if ({address} < {depth}u) ' if checked else ''}{{ {copies} }}")
        return name, kind
