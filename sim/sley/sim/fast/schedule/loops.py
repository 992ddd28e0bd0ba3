"""Which groups become one loop."""

from collections import defaultdict
from collections.abc import Hashable, Iterable

from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.optimise.machine_types import c_type
from sley.sim.fast.read.netlist import WORD

LANE_BY_LANE = frozenset({"divu", "modu", "divs", "mods", "parity"})
"""Operators that vectors do not have: a loop computes them lane by lane, in at least 32 bits."""


NARROW = 32
"""Bits of a lane into which slices of words are narrowed as they are read: half as many registers, or twice as many
elements in each. From smaller numbers the conversion would cost more than it saves."""


def narrows(elements: Elements, number: int, bits: int) -> bool:
    """Whether a group is slices of words that are wider than lanes of so many bits."""
    group = elements.groups[number]
    return group.op == "slice" and bits == NARROW < elements.width[elements.operands[group.values[0]][0]] <= WORD


class Sets:
    """Disjoint sets of numbers that can be joined."""

    def __init__(self, members: Iterable[int]) -> None:
        self._parent = {number: number for number in members}

    def root(self, number: int) -> int:
        """The number that stands for the set of this one."""
        parent = self._parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def join(self, a: int, b: int) -> None:
        self._parent[self.root(b)] = self.root(a)

    def __contains__(self, number: int) -> bool:
        return number in self._parent

    def all(self) -> list[list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for number in self._parent:
            found[self.root(number)].append(number)
        return list(found.values())


def lane_type(elements: Elements, numbers: Iterable[int]) -> str:
    """The smallest type for all values of these groups, but for the operands of slices that ``narrows`` is true of."""
    widest = 1
    for number in numbers:
        group = elements.groups[number]
        operands = elements.operands[group.values[0]]
        own = [elements.width[operand] for operand in operands if elements.width[operand] <= WORD]
        if group.op in ("read", "write"):
            own = own[1:]
        elif group.op == "slice":
            own = [min(width, NARROW) for width in own]
        widest = max(widest, group.width, *own, 1)
        if group.op in LANE_BY_LANE:
            widest = max(widest, 32)
    return c_type(widest)


def waits(elements: Elements, numbers: Iterable[int]) -> frozenset[tuple[int, int]]:
    """What all registers of these groups wait for: values, and what each is while the contents stay."""
    common: frozenset[tuple[int, int]] | None = None
    for number in numbers:
        if elements.groups[number].op == "next":
            for value in elements.groups[number].values:
                found = keeps(elements, value)
                common = found if common is None else common & found
                if not common:
                    return frozenset()
    return common or frozenset()


def keeps(elements: Elements, sink: int) -> frozenset[tuple[int, int]]:
    """Values that each decide alone that a register keeps its contents, and what they are then."""
    register = elements.register(sink)
    if elements.op[register.next] != "mux":
        return frozenset()
    select, *branches = elements.operands[register.next]
    return frozenset((select, side) for side, branch in enumerate(branches) if branch == register.value)


def loops(elements: Elements, numbers: Iterable[int]) -> list[list[int]]:
    """Groups of one number of elements, as loops: those that use each other's values, or read the same arrays.

    The latter only if their lanes have one type, and if their registers wait for the same: what works in every cycle
    would keep the others from being skipped. Within a loop operands come first.
    """
    ordered = sorted(numbers, key=lambda number: elements.groups[number].values[0])
    sets = Sets(ordered)
    for number in ordered:
        own = elements.groups[number]
        for column in _columns(elements, number):
            other = elements.group_of.get(column[0], -1)
            if other in sets and elements.groups[other].values == column and elements.groups[other].slots == own.slots:
                sets.join(number, other)
    first_of: dict[Hashable, int] = {}
    for members in sets.all():
        kind = lane_type(elements, members), waits(elements, members)
        for number in members:
            for column in _columns(elements, number):
                if len(set(column)) == len(column) and all(map(elements.source, column)):
                    sets.join(first_of.setdefault((kind, elements.groups[number].slots, column), number), number)
    return [sorted(members, key=ordered.index) for members in sets.all()]


def _columns(elements: Elements, number: int) -> Iterable[tuple[int, ...]]:
    return zip(*(elements.operands[value] for value in elements.groups[number].values), strict=True)
