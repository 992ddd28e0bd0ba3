"""Where groups begin: sinks that may become the elements of one loop, and parts of reductions."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from sley.sim.fast.optimise.elements import MIN_ELEMENTS, Elements

SPARSE = 2
"""A loop may have so many times more steps than elements."""


def divided(elements: Elements, loops: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Candidates divided into what shares arrays, the distance to neighbours, and enables."""
    return [part for sinks in loops for piece in _together(elements, sinks) for part in _split(elements, piece)]


def _together(elements: Elements, sinks: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Next values by the arrays of their registers, in the order there.

    Where most elements take over the contents of a neighbour, also by the distance to it.
    """
    if elements.op[sinks[0]] != "next":
        return [sinks]
    arrays: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for sink in sinks:
        array, index = elements.stored[elements.register(sink).value]
        arrays[array].append((index, sink))
    result = []
    for found in arrays.values():
        found.sort()
        sources = [elements.stored.get(elements.operands[sink][0], (-1, 0)) for _, sink in found]
        distances = [(array, place - index) for (array, place), (index, _) in zip(sources, found, strict=True)]
        distance, count = Counter(distances).most_common(1)[0]
        if distance[0] < 0 or count < len(found) / 2:
            result.append(tuple(sink for _, sink in found))
            continue
        by_distance: dict[tuple[int, int], list[int]] = defaultdict(list)
        for (_, sink), distance in zip(found, distances, strict=True):
            by_distance[distance].append(sink)
        result += [tuple(same) for same in by_distance.values()]
    return result


def slots_of(elements: Elements, sinks: tuple[int, ...]) -> tuple[int, ...]:
    """The steps of a loop: as far apart as what it computes lies in memory, if not too far."""
    if elements.op[sinks[0]] == "next":
        indices = [elements.stored[elements.register(sink).value][1] for sink in sinks]
        if indices[-1] - indices[0] < SPARSE * len(sinks):
            return tuple(index - indices[0] for index in indices)
    return tuple(range(len(sinks)))


def _split(elements: Elements, sinks: tuple[int, ...]) -> list[tuple[int, ...]]:
    """One group for each value that many of the sinks share, such as the enable of a bank.

    Sharing is looked for in the operands of the sinks and two levels below.
    """
    parts = [sinks]
    for path in ((0,), (1,), (2,), (0, 0), (0, 1), (0, 2), (1, 0), (0, 1, 0), (0, 2, 0)):
        result = []
        for part in parts:
            by_operand: dict[int, list[int]] = defaultdict(list)
            for sink in part:
                by_operand[_follow(elements, sink, path)].append(sink)
            sizes = [len(values) for values in by_operand.values()]
            if len(sizes) > 1 and min(sizes) >= 2 * MIN_ELEMENTS:
                result += [tuple(values) for values in by_operand.values()]
            else:
                result.append(part)
        parts = result
    return [part for part in parts if _loopable(elements, part)]


def _follow(elements: Elements, value: int, path: tuple[int, ...]) -> int:
    for index in path:
        operands = elements.operands[value]
        if index >= len(operands):
            return -1
        value = operands[index]
    return value


def _loopable(elements: Elements, sinks: tuple[int, ...]) -> bool:
    """Writes can share a loop if they are side by side in the rows of one memory and share the address."""
    if elements.op[sinks[0]] != "write":
        return True
    return len({elements.operands[sink][0] for sink in sinks}) == 1


def reductions(elements: Elements) -> list[tuple[int, ...]]:
    """Parts of concatenations, and of chains of one operator, that are computed alike."""
    marks = elements.marks
    inner: set[int] = set()
    found = []
    for value in range(elements.first_sink - 1, -1, -1):
        op = elements.op[value]
        if not marks[value] or value in inner or op not in ("concat", "and", "or", "xor", "add"):
            continue
        parts: list[int] = []
        stack = [value]
        while stack:
            top = stack.pop()
            if top != value and (op == "concat" or elements.op[top] != op or top in elements.group_of):
                parts.append(top)
            else:
                inner.add(top)
                stack += elements.operands[top][::-1]
        by_shape: dict[int, list[int]] = defaultdict(list)
        for part in dict.fromkeys(parts):
            if not elements.source(part) and part not in elements.group_of:
                by_shape[elements.shapes[part]].append(part)
        found += [tuple(same) for same in by_shape.values() if len(same) >= MIN_ELEMENTS]
    return found
