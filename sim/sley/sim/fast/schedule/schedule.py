"""Pass 5, schedule: groups become *fragments*, pieces of code that run as a whole or, when nothing changed, not at all.

A fragment holds the groups of one instance (or of alike instances, for loops) with one number of elements and one
stage. Fragments run in the order of their stages; a fragment reads what other fragments of earlier stages stored. What
only a clock's edge needs is in fragments of its own, which run at the edge (``ticks.py``). A value that costs no more
than reading it (a slice of a register, say) belongs to no fragment and is made where it is used.
"""

from collections import Counter, defaultdict

from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.schedule.fragments import Fragment, Schedule
from sley.sim.fast.schedule.loops import Sets, loops
from sley.sim.fast.schedule.ticks import clock_of, edge_order, memory_of
from sley.sim.fast.schedule.units import Unit, units_of
from sley.sim.fast.schedule.uses import Uses, cheap_values, readers_of, uses_of

MIN_PART = 24
"""Groups in a part of a fragment that is a fragment of its own."""


def schedule(elements: Elements) -> Schedule:
    """Puts every group into a fragment and the fragments in order."""
    cheap = cheap_values(elements)
    uses = {n: uses_of(elements, n, cheap) for n, group in enumerate(elements.groups) if group.values[0] not in cheap}
    units = units_of(elements, uses, cheap)
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
    readers = readers_of(elements, fragment_of, stored)
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


def _depths(elements: Elements) -> list[int]:
    depths: list[int] = []
    for operands in elements.operands:
        depths.append(1 + max((depths[operand] for operand in operands), default=-1))
    return depths
