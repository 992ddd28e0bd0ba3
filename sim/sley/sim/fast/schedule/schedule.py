"""Pass 5, schedule: groups become *fragments*, pieces of code that run as a whole or, when nothing changed, not at all.

A fragment holds the groups of one instance (or of alike instances, for loops) with one number of elements and one
stage. Fragments run in the order of their stages; a fragment reads what other fragments of earlier stages stored. What
only a clock's edge needs is in fragments of its own, which run at the edge (``ticks.py``). A value that costs no more
than reading it (a slice of a register, say) belongs to no fragment and is made where it is used.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.schedule.loops import Sets, loops
from sley.sim.fast.schedule.ticks import clock_of, edge_order, memory_of

MIN_VALUES = 80
"""An instance with fewer scalar values shares the fragment of the instance around it."""

MIN_PART = 24
"""Groups in a part of a fragment that is a fragment of its own."""

_CHEAP = frozenset({"slice", "not", "sext", "eq", "ne", "concat", "and", "or"})
_GLUE = frozenset({"concat", "slice", "sext", "not"})
_CHEAP_OPERANDS = 2
_DIGITS = re.compile(r"\d+")


Unit = tuple[str, int, bool, int]
"""What the groups of a fragment have in common: home, number of elements, whether they change in every cycle, and the
clock at whose edge they act."""

Uses = dict[int, list[tuple[int, bool]]]
"""For each group that is in a fragment: the groups it uses, and whether each element uses just the same element."""


@dataclass(slots=True)
class Fragment:
    home: str
    elements: int
    stage: int
    clock: int = -1
    """The clock at whose edge it runs; -1: it runs before, while everything settles."""
    groups: list[int] = field(default_factory=list)
    alone: bool = False
    """Whether it was kept apart only to have a place of its own in the order of the edge."""


@dataclass(slots=True)
class Schedule:
    elements: Elements
    fragments: list[Fragment]
    """In the order in which they run: those that settle, then those of the edges."""
    settling: int
    """Number of the first ones."""
    in_place: set[int]
    """Groups of next values and writes that overwrite the contents of their registers and memories."""
    fragment_of: list[int]
    """For each group its fragment; -1 for a cheap one."""
    stored: set[int]
    """Groups whose values other fragments, or other elements of the loop, read."""
    readers: dict[int, set[int]]
    """For each register, input and stored value the fragments that read it."""
    memory_readers: dict[int, set[int]]
    """The same for each memory."""


def _cheap_values(elements: Elements) -> set[int]:
    """Scalar values that are made again wherever they are used."""
    depth: dict[int, int] = {}
    cheap: set[int] = set()
    for value in range(elements.first_sink):
        if elements.source(value):
            depth[value] = 0
            continue
        if not elements.marks[value] or elements.op[value] not in _CHEAP or elements.width[value] > 64:
            continue
        if value not in elements.group_of:
            continue
        group = elements.groups[elements.group_of[value]]
        operands = elements.operands[value]
        if len(group.values) > 1 or len(operands) > _CHEAP_OPERANDS:
            continue
        if all(operand in depth for operand in operands):
            inner = max(depth[operand] for operand in operands)
            small = elements.op[value] in ("slice", "not", "sext")
            constant = any(elements.op[operand] == "const" for operand in operands)
            if inner < 2 and (small or constant):
                depth[value] = inner + 1
                cheap.add(value)
    return cheap


def _fragment_homes(elements: Elements, cheap: set[int]) -> list[str]:
    """For each instance the path of the instance whose fragment its scalar values go to."""
    count: dict[str, int] = defaultdict(int)
    paths = elements.netlist.instances
    for group in elements.groups:
        if len(group.values) == 1 and group.values[0] not in cheap:
            count[paths[elements.home[group.values[0]]]] += 1
    target = {path: path for path in paths}
    for path in sorted(paths, key=lambda path: -path.count(".")):
        parent = path.rpartition(".")[0]
        if count[path] < MIN_VALUES and parent in target:
            target[path] = parent
            count[parent] += count[path]
    homes = []
    for path in paths:
        while target[path] != path:
            path = target[path]
        homes.append(path)
    return homes


def schedule(elements: Elements) -> Schedule:
    """Puts every group into a fragment and the fragments in order."""
    cheap = _cheap_values(elements)
    homes = _fragment_homes(elements, cheap)
    patterns = [_DIGITS.sub("#", path) for path in elements.netlist.instances]
    restless = _restless(elements)
    uses = {n: _uses(elements, n, cheap) for n, group in enumerate(elements.groups) if group.values[0] not in cheap}
    units: list[Unit] = []
    for group in elements.groups:
        first, count = group.values[0], len(group.values)
        home = elements.home[first]
        units.append((homes[home] if count == 1 else patterns[home], count, bool(restless[first]), -1))
    _follow_consumers(elements, uses, units)
    depth = _depths(elements)
    order = sorted(range(len(elements.groups)), key=lambda number: depth[elements.groups[number].values[0]])
    stage = [0] * len(elements.groups)
    order = [number for number in order if number in uses]
    for number in order:
        latest = 0
        for other, near in uses[number]:
            latest = max(latest, stage[other] + (not near or units[other] != units[number]))
        stage[number] = latest
    parts = _connected(uses, units, stage, MIN_PART)
    _wait_for_edges(elements, uses, units, stage, parts, order)
    apart = _apart(elements, units, _connected(uses, units, stage, 1))
    fragments: dict[tuple[Unit, int, int], Fragment] = {}
    for number in order:
        unit = units[number]
        key = (unit, 0, apart[number]) if number in apart else (unit, stage[number], parts[number])
        fragment = fragments.setdefault(key, Fragment(unit[0], unit[1], stage[number], unit[3]))
        fragment.groups.append(number)
        fragment.alone = number in apart
    return _ordered(elements, uses, list(fragments.values()))


def _ordered(elements: Elements, uses: Uses, fragments: list[Fragment]) -> Schedule:
    """Puts the fragments in order: those that settle by their stages, those of edges such that they need few copies."""
    ordered = sorted(
        (fragment for fragment in fragments if fragment.clock < 0),
        key=lambda fragment: (fragment.stage, fragment.elements, fragment.home),
    )
    settling = len(ordered)
    last = [fragment for fragment in fragments if fragment.clock >= 0]
    fragment_of = _numbered(elements, [*ordered, *last])
    stored: set[int] = set()
    memory_readers: dict[int, set[int]] = defaultdict(set)
    for number, group in enumerate(elements.groups):
        if group.op == "read":
            memory_readers[memory_of(elements, number)].add(fragment_of[number])
    for number, found_uses in uses.items():
        for other, near in found_uses:
            if not near or fragment_of[other] != fragment_of[number]:
                stored.add(other)
    readers = _readers(elements, fragment_of, stored)
    edge, in_place = edge_order(elements, [fragment.groups for fragment in last], readers, memory_readers, settling)
    place = [*range(settling), *(0 for _ in last)]
    for index in edge:
        fragment, before = last[index], ordered[-1] if len(ordered) > settling else None
        if before and fragment.alone and before.alone and _scalars_alike(before, fragment):
            before.groups += fragment.groups
        else:
            ordered.append(fragment)
        place[settling + index] = len(ordered) - 1
    for found in (readers, memory_readers):
        for value in found:
            found[value] = {place[reader] for reader in found[value]}
    return Schedule(
        elements, ordered, settling, in_place, _numbered(elements, ordered), stored, readers, memory_readers
    )


def _scalars_alike(one: Fragment, other: Fragment) -> bool:
    return one.elements == other.elements == 1 and (one.home, one.clock) == (other.home, other.clock)


def _numbered(elements: Elements, fragments: list[Fragment]) -> list[int]:
    """For each group the number of its fragment; -1 if it is in none."""
    numbers = [-1] * len(elements.groups)
    for index, fragment in enumerate(fragments):
        for number in fragment.groups:
            numbers[number] = index
    return numbers


def _wait_for_edges(
    elements: Elements, uses: Uses, units: list[Unit], stage: list[int], parts: list[int], order: list[int]
) -> None:
    """Gives the clock to groups that nothing but sinks of this clock in one fragment needs, element by element.

    They join that fragment, whatever their own stage.
    """
    users: dict[int, list[tuple[int, bool]]] = defaultdict(list)
    for number, found in uses.items():
        for other, near in found:
            users[other].append((number, near))
    for number in reversed(order):
        clock = clock_of(elements, number)
        if users[number]:
            first = users[number][0][0]
            place = units[first], stage[first], parts[first]
            alike = all(near and (units[user], stage[user], parts[user]) == place for user, near in users[number])
            if alike and units[first][:3] == units[number][:3] and units[first][3] >= 0:
                clock = units[first][3]
                _, stage[number], parts[number] = place
        units[number] = (*units[number][:3], clock)


def _apart(elements: Elements, units: list[Unit], connected: list[int]) -> dict[int, int]:
    """Numbers for groups at an edge that have fragments of their own: those of each loop, and scalars of each array.

    The fewer registers a fragment computes, the more often it can come after all that read them.
    """
    arrays: dict[int, set[int]] = defaultdict(set)
    for number, group in enumerate(elements.groups):
        if group.op == "next" and units[number][1] == 1:
            register = elements.register(group.values[0]).value
            arrays[connected[number]].add(elements.stored.get(register, (-1, 0))[0])
        elif group.op == "write":
            arrays[connected[number]].add(-1)
    result = {}
    by_unit: dict[Unit, list[int]] = defaultdict(list)
    for number, unit in enumerate(units):
        if unit[3] >= 0 and unit[1] > 1:
            by_unit[unit].append(number)
        elif unit[3] >= 0:
            found = arrays[connected[number]]
            if len(found) == 1 and -1 not in found:
                result[number] = -2 - min(found)
    for numbers in by_unit.values():
        for part in loops(elements, numbers):
            result.update(dict.fromkeys(part, part[0]))
    return result


def _follow_consumers(elements: Elements, uses: Uses, units: list[Unit]) -> None:
    """Moves glue that a single scalar value uses to the unit of its user, which then reads what the glue joins."""
    users: dict[int, set[int]] = defaultdict(set)
    for number, found in uses.items():
        for other, _ in found:
            users[other].add(number)
    for value in range(len(elements.op) - 1, -1, -1):
        number = elements.group_of.get(value, -1)
        if elements.op[value] not in _GLUE or number < 0:
            continue
        if len(elements.groups[number].values) > 1 or len(users[number]) != 1:
            continue
        (user,) = users[number]
        if units[user][1] == 1:
            units[number] = units[user]


def _connected(uses: Uses, units: list[Unit], stage: list[int], least: int) -> list[int]:
    """Divides what could be one fragment into parts that do not use each other's values, so that less must run.

    Returns a number for each group. Parts of less than ``least`` groups stay together.
    """
    count = len(units)
    sets = Sets(range(count))
    for number, found in uses.items():
        for other, near in found:
            if near and units[other] == units[number] and stage[other] == stage[number]:
                sets.join(number, other)
    sizes = Counter(sets.root(number) for number in range(count))
    return [sets.root(number) if sizes[sets.root(number)] >= least else -1 for number in range(count)]


def _restless(elements: Elements) -> bytearray:
    """Marks values that depend on a free-running counter, a register that changes in every cycle."""
    net = elements.netlist
    marks = bytearray(len(elements.op))
    for register in net.registers:
        value = register.next
        while net.op[value] == "mux" and any(net.op[operand] == "const" for operand in net.operands[value]):
            value = next((o for o in net.operands[value][1:] if net.op[o] != "const"), net.operands[value][0])
        if net.op[value] in ("add", "sub"):
            operands = net.operands[value]
            if register.value in operands and any(net.op[operand] == "const" for operand in operands):
                marks[register.value] = 1
    for value, operands in enumerate(elements.operands):
        if any(marks[operand] for operand in operands):
            marks[value] = 1
    return marks


def _readers(elements: Elements, fragment_of: list[int], stored: set[int]) -> dict[int, set[int]]:
    readers: dict[int, set[int]] = defaultdict(set)
    for number, group in enumerate(elements.groups):
        fragment = fragment_of[number]
        if fragment < 0:
            continue
        seen: set[int] = set()
        columns = zip(*(elements.operands[value] for value in group.values), strict=True)
        stack = [operand for column in columns for operand in elements.views.get(column, column)]
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if elements.source(value):
                readers[value].add(fragment)
                continue
            other = elements.group_of.get(value, -1)
            if other < 0 or fragment_of[other] < 0:
                stack += elements.operands[value]
            elif other in stored and fragment_of[other] != fragment:
                readers[value].add(fragment)
    return readers


def _uses(elements: Elements, number: int, cheap: set[int]) -> list[tuple[int, bool]]:
    """Groups that a group's operands are in, and whether each element uses just the same element of it."""
    found: list[tuple[int, bool]] = []
    own = elements.groups[number]
    for column in zip(*(elements.operands[value] for value in own.values), strict=True):
        viewed = elements.views.get(column)
        others = set()
        for operand in viewed or column:
            inner = _stored_value(elements, operand)
            if inner not in cheap and not elements.source(inner):
                others.add((elements.group_of[inner], inner == operand))
        for other, whole in others:
            group = elements.groups[other]
            near = whole and viewed is None and group.values == column and group.slots == own.slots
            found.append((other, near))
    return found


def _stored_value(elements: Elements, value: int) -> int:
    """What has to be stored so that the value can be read: itself, or what it is a slice of."""
    return elements.operands[value][0] if value in elements.aliases else value


def _depths(elements: Elements) -> list[int]:
    depths: list[int] = []
    for operands in elements.operands:
        depths.append(1 + max((depths[operand] for operand in operands), default=-1))
    return depths
