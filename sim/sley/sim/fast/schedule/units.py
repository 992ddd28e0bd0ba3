"""The units that fragments are made of: instances whose groups share fragments, and what wakes them."""

import re
from collections import defaultdict

from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.schedule.uses import Uses

MIN_VALUES = 80
"""An instance with fewer scalar values shares the fragment of the instance around it."""

_GLUE = frozenset({"concat", "slice", "sext", "not"})
_DIGITS = re.compile(r"\d+")

Unit = tuple[str, int, bool, int]
"""What the groups of a fragment have in common: home, number of elements, whether they change in every cycle, and the
clock at whose edge they act."""


def units_of(elements: Elements, uses: Uses, cheap: set[int]) -> list[Unit]:
    """For each group its unit, with no clock."""
    homes = _fragment_homes(elements, cheap)
    patterns = [_DIGITS.sub("#", path) for path in elements.netlist.instances]
    restless = _restless(elements)
    units: list[Unit] = []
    for group in elements.groups:
        first, count = group.values[0], len(group.values)
        home = elements.home[first]
        units.append((homes[home] if count == 1 else patterns[home], count, bool(restless[first]), -1))
    _follow_consumers(elements, uses, units)
    return units


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
