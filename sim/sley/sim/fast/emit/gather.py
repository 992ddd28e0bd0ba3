"""Operands of a loop that do not lie in memory as the loop goes through them are copied to where they do."""

from collections import Counter
from collections.abc import Callable

from sley.sim.fast.emit.layout import Place
from sley.sim.fast.emit.vectors import Vector
from sley.sim.fast.optimise.machine_types import ALIGN_ARRAYS, SIZES

SHORT_RUN = 4
"""Pieces of memory that are copied one by one; more of them in a loop."""

Cell = tuple[int, Place | None, int]
"""A slot of a loop, where its operand lies if it is in memory, and the operand."""

Operand = Callable[[int], str]
"""An operand as an expression."""


def gather(name: str, kind: str, cells: list[Cell], slots: int, operand: Operand) -> list[str]:
    """Statements that make an array ``name`` of so many slots and fill it; what is in slots without a cell is open."""
    room = slots + ALIGN_ARRAYS // SIZES[kind]  # the last copy may be of a whole vector
    filled = _shifted(name, kind, cells, operand) or _interleaved(name, kind, cells)
    return [f"{kind} {name}[{room}];", *(filled or _runs(name, kind, cells, operand))]


def _shifted(name: str, kind: str, cells: list[Cell], operand: Operand) -> list[str]:
    """Copies one stretch of memory that has most of the values in place, and then the others over it.

    So come the values of an element's neighbour, which at the edges of an array are something else.
    """
    size = SIZES[kind]
    origins = [place.offset - size * slot if place and place.type == kind else None for slot, place, _ in cells]
    counts = Counter(origin for origin in origins if origin is not None)
    if not counts:
        return []
    ((origin, count),) = counts.most_common(1)
    if origin is None or count < len(cells) / 2:
        return []
    inside = [slot for (slot, _, _), other in zip(cells, origins, strict=True) if other == origin]
    first, last = inside[0], inside[-1]
    lines = [f"memcpy({name} + {first}, AT({origin + size * first}), {size * (last + 1 - first)});"]
    others = [cell for cell, other in zip(cells, origins, strict=True) if other != origin]
    return lines + _singles(name, others, operand)


def _interleaved(name: str, kind: str, cells: list[Cell]) -> list[str]:
    """Interleaves 2, 4 or 8 stretches of memory, as words that consist of an element of each."""
    size, count = SIZES[kind], len(cells)
    for factor in (2, 4, 8):
        words, kinds = count // factor, [other for other, bytes_ in SIZES.items() if bytes_ == size * factor]
        if count % factor or words < SHORT_RUN or not kinds or cells[-1][0] != count - 1:
            continue
        starts = [place and place.offset for _, place, _ in cells[:factor]]
        if not all(
            place and place.type == kind and place.offset == (starts[slot % factor] or 0) + size * (slot // factor)
            for slot, place, _ in cells
        ):
            continue
        word = Vector.fitting(kinds[0], words)
        parts = [word.converted(f"load_{word.of(kind)}(AT({start} + {size} * j))", word.of(kind)) for start in starts]
        text = " | ".join(f"{part} << {8 * size * index}" if index else part for index, part in enumerate(parts))
        step = word.lanes
        return [f"for (int j = 0; j < {words}; j += {step}) store_{word}({name} + {factor} * j, {text});"]
    return []


def _singles(name: str, cells: list[Cell], operand: Operand) -> list[str]:
    """Copies values one by one, in a loop where they lie at equal distances."""
    lines = []
    while cells:
        count = _progression(cells)
        (slot, place, value), rest = cells[0], cells[count:]
        if count >= SHORT_RUN:
            next_slot, second, _ = cells[1]
            assert place is not None
            assert second is not None
            distance = second.offset - place.offset
            source = f"*({place.type}*)AT({place.offset} + {distance} * j)"
            lines.append(f"for (int j = 0; j < {count}; j++) {name}[{slot} + {next_slot - slot} * j] = {source};")
        else:
            lines.append(f"{name}[{slot}] = {place or operand(value)};")
            rest = cells[1:]
        cells = rest
    return lines


def _progression(cells: list[Cell]) -> int:
    """How many of the first cells, and what is stored there, lie at equal distances."""
    if len(cells) < 2:
        return len(cells)
    (slot, first, _), (next_slot, second, _) = cells[:2]
    if first is None or second is None or first.type != second.type:
        return 1
    step, distance = next_slot - slot, second.offset - first.offset
    for number, (other, place, _) in enumerate(cells):
        if place is None or place.type != first.type or place.offset != first.offset + distance * number:
            return number
        if other != slot + step * number:
            return number
    return len(cells)


def _runs(name: str, kind: str, cells: list[Cell], operand: Operand) -> list[str]:
    """Copies neighbours together; runs of one length at equal distances in a loop."""
    size = SIZES[kind]
    runs: list[tuple[int, int, int]] = []  # first slot, byte, slots
    singles: list[Cell] = []
    lines: list[str] = []
    index = 0
    while index < len(cells):
        slot, first, value = cells[index]
        count = 1
        while index + count < len(cells) and cells[index + count][::2] == (slot + count, value):
            count += 1
        if count >= SHORT_RUN:
            lines.append(f"for (unsigned j = 0; j < {count}; j++) {name}[{slot} + j] = {operand(value)};")
            index += count
            continue
        count = 1
        while first and first.type == kind and index + count < len(cells):
            other, place, _ = cells[index + count]
            if place is None or place.type != kind or place.offset != first.offset + size * count:
                break
            if other != slot + count:
                break
            count += 1
        if first and count > 1:
            runs.append((slot, first.offset, count))
        else:
            singles.append(cells[index])
        index += count
    while runs:
        (start, byte, count), number = runs[0], 1
        step = distance = 0
        if len(runs) > 1:
            step, distance = runs[1][0] - start, runs[1][1] - byte
            while number < len(runs) and runs[number] == (start + step * number, byte + distance * number, count):
                number += 1
        if number >= SHORT_RUN:
            target, source = f"{name} + {start} + {step} * j", f"AT({byte} + {distance} * j)"
            lines.append(f"for (int j = 0; j < {number}; j++) memcpy({target}, {source}, {count * size});")
        else:
            number = 1
            lines.append(f"memcpy({name} + {start}, AT({byte}), {count * size});")
        runs = runs[number:]
    return lines + _singles(name, singles, operand)
