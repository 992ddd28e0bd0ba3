"""Where flip-flops and memory rows wider than a word come apart: at the edges of the lanes that the design uses.

*Lanes* of a wide wire are pieces of one width, four or more, side by side or at equal distances, that the design reads
or assigns. An edge of a lane in one wire is an edge in every wire that bitwise operators, assignments, connections and
memories tie to it; edges spread until nothing changes. Pieces that occur alone, such as the fields of a packet, are no
lanes: a slice of a machine word costs less than a variable for every field.
"""

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from sley.sim.fast.read.netlist import WORD
from sley.sim.fast.read.rtlil import CONST, Assign, Cell, Sigspec, Switch, plain

if TYPE_CHECKING:
    from sley.sim.fast.read.hierarchy import Hierarchy, Instance

MIN_LANES, MIN_LANE_WIDTH = 4, 4

Place = tuple[str, int]
"""("wire", its number) or ("memory", its number)."""

Part = tuple[Place | None, int, int]
"""Bits of a place, lowest bit and width; None for bits that need no cutting."""


class _Edges:
    def __init__(self) -> None:
        self.at: dict[Place, set[int]] = defaultdict(set)
        self._pieces: dict[Place, set[tuple[int, int]]] = defaultdict(set)
        self._ties: dict[Place, list[tuple[int, int, Place, int]]] = defaultdict(list)

    def use(self, parts: list[Part]) -> None:
        for place, low, width in parts:
            if place and width >= MIN_LANE_WIDTH:
                self._pieces[place].add((width, low))

    def tie(self, left: list[Part], right: list[Part]) -> None:
        """Bits of two values belong together one by one."""
        self.use(left)
        self.use(right)
        lefts, rights = left[::-1], right[::-1]
        while lefts and rights:
            (a, a_low, a_width), (b, b_low, b_width) = lefts.pop(), rights.pop()
            width = min(a_width, b_width)
            if a_width > width:
                lefts.append((a, a_low + width, a_width - width))
            if b_width > width:
                rights.append((b, b_low + width, b_width - width))
            self.use([(a, a_low, width), (b, b_low, width)])
            if a and b:
                self._ties[a].append((a_low, width, b, b_low))
                self._ties[b].append((b_low, width, a, a_low))

    def spread(self) -> None:
        for place, pieces in self._pieces.items():
            self.at[place].update(_lane_edges(pieces))
        new = [(place, position) for place, edges in self.at.items() for position in edges]
        while new:
            place, position = new.pop()
            for low, width, other, other_low in self._ties[place]:
                if low <= position <= low + width:
                    image = position - low + other_low
                    if image and image not in self.at[other]:
                        self.at[other].add(image)
                        new.append((other, image))


def _lane_edges(pieces: set[tuple[int, int]]) -> set[int]:
    """Edges of the pieces (width, position) that are lanes. One part of every lane, such as its sign, is none."""
    starts: dict[int, list[int]] = defaultdict(list)
    for width, low in sorted(pieces):
        starts[width].append(low)
    edges: set[int] = set()
    steps_seen: set[int] = set()
    for width in sorted(starts, reverse=True):
        lows = starts[width]
        steps = {b - a for a, b in pairwise(lows)}
        step = min(steps, default=0)
        if len(lows) >= MIN_LANES and len(steps) == 1 and step >= width and step not in steps_seen:
            steps_seen.add(step)
            for low in lows:
                edges |= {low, low + width}
    return edges - {0}


def find_cuts(hierarchy: "Hierarchy") -> dict[Place, list[int]]:
    """For every wide wire and memory the positions at which it is cut."""
    edges = _Edges()
    widths: dict[Place, int] = {}

    def parts(instance: "Instance", spec: Sigspec) -> list[Part]:
        result: list[Part] = []
        for wire, low, width in spec:
            if wire == CONST or instance.module.wires[wire].width <= WORD:
                result.append((None, 0, width))
            else:
                place = ("wire", instance.base + wire)
                widths[place] = instance.module.wires[wire].width
                result.append((place, low, width))
        return result

    def process(instance: "Instance", body: list[Assign | Switch]) -> None:
        for statement in body:
            if isinstance(statement, Assign):
                edges.tie(parts(instance, statement.target), parts(instance, statement.value))
            else:
                edges.use(parts(instance, statement.test))
                for case in statement.cases:
                    process(instance, case.body)

    def cell(instance: "Instance", item: Cell) -> None:
        ports = item.ports
        if item.kind in ("$dff", "$adff"):
            edges.tie(parts(instance, ports["Q"]), parts(instance, ports["D"]))
        elif item.kind in ("$memrd_v2", "$memwr_v2"):
            port = hierarchy.memories[instance.base, plain(str(item.parameters["MEMID"]))]
            if port.memory.width > WORD:
                place = ("memory", port.number)
                widths[place] = port.memory.width
                edges.tie([(place, 0, port.memory.width)], parts(instance, ports["DATA"]))
                if item.kind == "$memwr_v2":
                    edges.use(_runs_of_one(place, ports["EN"]))
        elif item.kind in ("$and", "$or", "$xor", "$not", "$mux"):
            for name in ("A", "B"):
                if name in ports:
                    edges.tie(parts(instance, ports["Y"]), parts(instance, ports[name]))
        else:
            for spec in ports.values():
                edges.use(parts(instance, spec))

    for instance in hierarchy.instances:
        for item in instance.module.cells:
            cell(instance, item)
        for body in instance.module.processes:
            process(instance, body.body)
    for wire, drivers in hierarchy.drivers.items():
        for driver in drivers:
            if isinstance(driver.source, tuple) and driver.width > WORD:
                owner = hierarchy.instance_of(wire)
                target = parts(owner, ((wire - owner.base, driver.low, driver.width),))
                edges.tie(target, parts(driver.instance, driver.source))
    edges.spread()
    return {place: sorted(position for position in edges.at[place] if position < widths[place]) for place in widths}


def _runs_of_one(place: Place, spec: Sigspec) -> list[Part]:
    """Bits of a memory row that a write port enables together, one part for each enable."""
    result: list[Part] = []
    last: tuple[int, int] | None = None
    position = 0
    for wire, low, width in spec:
        for bit in range(width):
            key = (wire, low >> bit & 1) if wire == CONST else (wire, low + bit)
            if key == last:
                result[-1] = (place, result[-1][1], result[-1][2] + 1)
            else:
                result.append((place, position, 1))
            last = key
            position += 1
    return result
