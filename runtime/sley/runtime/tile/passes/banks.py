"""First rows of buffers, such that what is read at the same time is in different banks, and what is written.

A bank has one read and one write port. Two operands of one instruction that are in one bank take two cycles a row;
two units that read one bank wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from sley.abi.faults import Unit
from sley.runtime.tile.ir import Block, Value
from sley.runtime.tile.operations import UNITS
from sley.runtime.tile.passes.buffers import Buffer

TOGETHER, BESIDE = 8, 1
"""What it costs if two operands of an instruction are in one bank, and if those of two units are."""
Conflicts = dict[Buffer, dict[Buffer, int]]


def conflicts(block: Block, of: Mapping[Value, Buffer]) -> Conflicts:
    """What it costs if two buffers are in one bank."""
    readers: dict[Unit, set[Buffer]] = defaultdict(set)
    writers: dict[Unit, set[Buffer]] = defaultdict(set)
    found: Conflicts = defaultdict(lambda: defaultdict(int))

    def add(a: Buffer, b: Buffer, cost: int) -> None:
        if a is not b and a.space is b.space:
            found[a][b] = found[b][a] = max(found[a][b], cost)

    for op in block.walk():
        unit = UNITS.get(op.name)
        if unit is None:
            continue
        read = [of[value] for value in op.operands if value in of]
        for a, b in combinations(read, 2):
            add(a, b, TOGETHER)
        readers[unit] |= set(read)
        writers[unit] |= {of[value] for value in op.results if value in of}
    for groups in (readers, writers):
        for first, second in combinations(groups.values(), 2):
            for a in first:
                for b in second:
                    add(a, b, BESIDE)
    return found


def place_in_banks(buffers: Sequence[Buffer], rows: int, banks: int, costs: Conflicts) -> None:
    """Sets ``first`` of the buffers of one memory, which all together have room in it."""
    bank, placed = rows // banks, list[Buffer]()

    def used(buffer: Buffer, first: int) -> range:
        return range(first // bank, (first + buffer.all_rows - 1) // bank + 1)

    def cost(buffer: Buffer, first: int) -> int:
        mine = used(buffer, first)
        total = 0
        for other, price in costs.get(buffer, {}).items():
            if other in placed:
                theirs = used(other, other.first)
                total += price * max(0, min(mine.stop, theirs.stop) - max(mine.start, theirs.start))
        return total

    for buffer in sorted(buffers, key=lambda buffer: -buffer.all_rows):
        starts = {*range(0, rows, bank), *(other.first + other.all_rows for other in placed)}
        free = [
            first
            for first in sorted(starts)
            if first + buffer.all_rows <= rows
            and all(first + buffer.all_rows <= other.first or other.first + other.all_rows <= first for other in placed)
        ]
        if not free:
            break
        buffer.first = min(free, key=lambda first: (cost(buffer, first), first))
        placed.append(buffer)
    else:
        return
    first = 0
    for buffer in buffers:  # no room beside each other in banks of their own: one behind the other
        buffer.first = first
        first += buffer.all_rows
