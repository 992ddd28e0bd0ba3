"""What all fragments of a design share: its state in C, and what they add to it."""

from collections import defaultdict
from collections.abc import Iterable

from sley.sim.fast.emit.commit import CommitUnit, WriteUnit
from sley.sim.fast.emit.layout import Place, StateLayout
from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.optimise.machine_types import ALIGN_ARRAYS, c_type, words
from sley.sim.fast.read.netlist import WORD
from sley.sim.fast.schedule.fragments import Schedule
from sley.sim.fast.schedule.ticks import write_ports


class Design:
    """A schedule and where everything of it is in the state.

    Fragments that are written add their units of the end of a cycle, ``commits`` and ``writes``, and what these keep in
    the state.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.elements: Elements = schedule.elements
        self.net = schedule.elements.netlist
        self.layout = StateLayout()
        self.readers = schedule.readers
        self.memory_readers = schedule.memory_readers
        self.commits: list[CommitUnit] = []
        self.writes: list[WriteUnit] = []
        self.places: dict[int, Place] = {}
        self.strips: dict[int, tuple[Place, int, int]] = {}
        self.fragment_count = len(schedule.fragments)
        self.write_ports = write_ports(self.net)
        self.spare = ALIGN_ARRAYS
        """Bytes behind everything, which loops may read, or write if a row is outside of its memory."""
        self.write_order = self._order_writes()
        self._declare()

    def _order_writes(self) -> dict[int, int]:
        """For the first write of every group its place in the order of clocks and ports."""
        firsts = [self.elements.parameter[group.values[0]] for group in self.elements.groups if group.op == "write"]
        firsts.sort(key=lambda first: (self.net.writes[first].clock, first))
        return {first: order for order, first in enumerate(firsts)}

    def _declare(self) -> None:
        layout, net, elements = self.layout, self.net, self.elements
        words_of_bits = max(1, -(-self.fragment_count // 64))
        layout.add("dirty", "u8", words_of_bits * 8)
        layout.add("changed", "u64", words_of_bits)
        layout.add("unclocked", "u32")
        layout.add("pending", "u64", max(1, -(-len(self.write_order) // 64)))
        layout.add("runs", "u64", max(1, self.fragment_count))
        for number, port in enumerate(net.inputs):
            self.places[port.value] = self._variable(f"i{number}", port.width)
        for number, port in enumerate(net.outputs):
            self._variable(f"o{number}", port.width)
        doubled = self._doubled()
        scalars = self._scalar_registers()
        starts = []
        for side, twice in (("r", True), ("n", True), ("r", False)):
            starts.append(layout.align())  # so that both sides of what exists twice have the same offsets
            for number, values in enumerate(elements.arrays):
                if twice == any(value in doubled for value in values):
                    kind = c_type(max(net.width[value] for value in values if value >= 0))
                    layout.add_elements(f"{side}a{number}", kind, len(values))
            for number in scalars:
                if twice == (net.registers[number].value in doubled):
                    layout.add(f"{side}{number}", c_type(net.registers[number].width))
        self.next_shift = starts[1] - starts[0]
        """Bytes from the contents of a register to its next value, if that has a place."""
        for number, register in enumerate(net.registers):
            if register.value in elements.stored:
                array, index = elements.stored[register.value]
                self.places[register.value] = layout.place(f"ra{array}", index)
            else:
                self.places[register.value] = layout.place(f"r{number}")
            if register.reset >= 0:
                layout.add(f"rs{number}", "u8")
        for number in sorted(self.schedule.stored):
            group = elements.groups[number]
            count = len(group.values)
            if count == 1:
                self.places[group.values[0]] = self._variable(f"t{number}", group.width)
            else:
                layout.add_elements(f"t{number}", c_type(group.width), group.slots[-1] + 1)
                for slot, value in zip(group.slots, group.values, strict=True):
                    self.places[value] = layout.place(f"t{number}", slot)
        for number, event in enumerate(net.events):
            layout.add(f"e{number}", "u8")
            if event.arguments:
                layout.add(f"ea{number}", "u64", len(event.arguments))
        self._declare_memories()

    def _doubled(self) -> set[int]:
        """Registers whose next value has a place of its own."""
        elements, net = self.elements, self.net
        doubled: set[int] = set()
        for number, group in enumerate(elements.groups):
            if group.op == "next" and number not in self.schedule.in_place:
                registers = [net.registers[elements.parameter[value]] for value in group.values]
                doubled.update(
                    register.value
                    for register in registers
                    if len(registers) > 1 or (register.clock >= 0 and register.next != register.value)
                )
        return doubled

    def _scalar_registers(self) -> list[int]:
        """Registers outside of arrays, those that one fragment computes for one clock side by side."""
        elements, net = self.elements, self.net
        fragment = {
            elements.parameter[value]: self.schedule.fragment_of[number]
            for number, group in enumerate(elements.groups)
            if group.op == "next"
            for value in group.values
        }
        scalars = [number for number, register in enumerate(net.registers) if register.value not in elements.stored]

        def order(number: int) -> tuple[int, int, int]:
            register = net.registers[number]
            # A register that never changes has no next value that could be copied along with its neighbours'.
            constant = register.clock < 0 or register.next == register.value
            return -1 if constant else fragment[number], register.clock, -register.width

        return sorted(scalars, key=order)

    def _variable(self, name: str, width: int) -> Place:
        if width <= WORD:
            self.layout.add(name, c_type(width))
        else:
            self.layout.add(name, "u64", words(width))
        return self.layout.place(name)

    def _declare_memories(self) -> None:
        net = self.net
        for number, memory in enumerate(net.memories):
            by_width: dict[int, list[int]] = defaultdict(list)
            for segment in memory.segments:
                by_width[net.segments[segment].width].append(segment)
            for width, segments in by_width.items():
                name = f"m{number}_{width}"
                self.layout.add(name, c_type(width), max(1, memory.depth * len(segments)))
                for position, segment in enumerate(segments):
                    self.strips[segment] = (self.layout.place(name), len(segments), position)

    def mark(self, readers: Iterable[int], difference: str = "") -> list[str]:
        """Statements that make fragments dirty; with ``difference``, a variable, only if it is not zero.

        They touch single bytes: such instructions are the shortest, and much of the code consists of them.
        """
        masks: dict[int, int] = defaultdict(int)
        for reader in readers:
            masks[reader // 8] |= 1 << reader % 8
        condition = f"(u8)-({difference} != 0) & " if difference else ""
        return [f"s->dirty[{index}] |= {condition}{bits:#x};" for index, bits in sorted(masks.items())]
