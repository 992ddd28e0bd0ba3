"""What groups use of each other, and which values are made again wherever they are used."""

from collections import defaultdict

from sley.sim.fast.optimise.elements import Elements

Uses = dict[int, list[tuple[int, bool]]]
"""For each group that is in a fragment: the groups it uses, and whether each element uses just the same element."""

_CHEAP = frozenset({"slice", "not", "sext", "eq", "ne", "concat", "and", "or"})
_CHEAP_OPERANDS = 2


def cheap_values(elements: Elements) -> set[int]:
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


def uses_of(elements: Elements, number: int, cheap: set[int]) -> list[tuple[int, bool]]:
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


def readers_of(elements: Elements, fragment_of: list[int], stored: set[int]) -> dict[int, set[int]]:
    """For each register, input and stored value the fragments that read it."""
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
