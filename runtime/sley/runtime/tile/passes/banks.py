"""First rows of buffers, such that what is read at the same time is in different banks, and what is written.

A bank has one read and one write port. Two operands of one instruction that are in one bank take two cycles a row, and
so do two halves of one tile that it reads; two units that read one bank wait for each other, also where they read slots
of one tile: sums that a product adds to, and those of the round before on their way out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.runtime.tile.ir import Block, Op, Value
from sley.runtime.tile.operations import UNITS
from sley.runtime.tile.passes.buffers import Buffer
from sley.runtime.tile.passes.partials import in_pairs, repeated_column

TOGETHER, BESIDE = 8, 1
"""What it costs if two operands of an instruction are in one bank, and if those of two units are."""
CLEARLY = 0.75


@dataclass(frozen=True)
class Conflicts:
    """What it costs if two buffers are in one bank, and, of a buffer, how many rows are ``apart`` that are read at the
    same time, and what it costs if these are: halves of a slot, or slots."""

    between: dict[Buffer, dict[Buffer, int]]
    within: dict[Buffer, tuple[int, int]]


def reduces_chunks(op: Op) -> bool:
    """Whether an operation joins chunks of a tile with results so far, which it reads, too."""
    return op.name in ("reduce", "fold") and op.attributes["axis"] == 1


def conflicts(
    block: Block,
    of: Mapping[Value, Buffer],
    partials: Mapping[Op, Buffer],
    repeated: Mapping[Op, Buffer],
    asides: Mapping[Op, Buffer],
    config: ChipConfig,
) -> Conflicts:
    """``partials``: of reductions whose results are elsewhere. ``repeated``: columns that they read in their place.
    ``asides``: where half of the partial results are in the end."""
    readers: dict[Unit, set[Buffer]] = defaultdict(set)
    writers: dict[Unit, set[Buffer]] = defaultdict(set)
    found: dict[Buffer, dict[Buffer, int]] = defaultdict(lambda: defaultdict(int))
    within: dict[Buffer, tuple[int, int]] = {}

    def add(a: Buffer, b: Buffer, cost: int) -> None:
        if a is not b and a.space is b.space:
            found[a][b] = found[b][a] = max(found[a][b], cost)

    for op in block.walk():
        unit = UNITS.get(op.name)
        if unit is None:
            continue
        read = [of[value] for value in op.operands if value in of]
        if op in repeated:
            column = repeated_column(op, config)
            read = [repeated[op] if value is column else of[value] for value in op.operands if value in of]
        for a, b in combinations(read, 2):
            add(a, b, TOGETHER)
        if reduces_chunks(op):
            own = partials.get(op, of[op.result])
            for buffer in read:
                add(buffer, own, TOGETHER)
            if op in asides:
                add(asides[op], own, TOGETHER)
            halved, cost = (read[0], TOGETHER) if in_pairs(op, config) else (own, BESIDE)
            within[halved] = max(halved.rows // 2, 1), cost
        readers[unit] |= set(read)
        writers[unit] |= {of[value] for value in op.results if value in of}
    for sums in readers[Unit.MATRIX] & readers[Unit.STORE]:
        if sums.slots > 1:
            within.setdefault(sums, (sums.rows, BESIDE))
    for groups in (readers, writers):
        for first, second in combinations(groups.values(), 2):
            for a in first:
                for b in second:
                    add(a, b, BESIDE)
    return Conflicts(found, within)


def place_in_banks(buffers: Sequence[Buffer], rows: int, banks: int, costs: Conflicts) -> None:
    """Sets ``first`` of the buffers of one memory, which all together have room in it: the best of some orders in which
    each takes the best place that is left, from below or from above; the first of these, the largest ones from below,
    unless another one costs clearly less, as costs are estimates."""
    bank = rows // banks
    by_size = sorted(buffers, key=lambda buffer: -buffer.all_rows)
    by_cost = sorted(by_size, key=lambda buffer: -max(costs.between.get(buffer, {}).values(), default=0))
    found = [_places(order, rows, bank, costs, up) for order in (by_size, by_cost) for up in (1, -1)]
    best = min((places for places in found if places is not None), key=lambda places: places[0], default=None)
    if found[0] is not None and best is not None and best[0] > CLEARLY * found[0][0]:
        best = found[0]
    if best is not None:
        for buffer, first in best[1].items():
            buffer.first = first
        return
    first = 0
    for buffer in buffers:  # no room beside each other in banks of their own: one behind the other
        buffer.first = first
        first += buffer.all_rows


def _places(
    order: Sequence[Buffer], rows: int, bank: int, costs: Conflicts, up: int
) -> tuple[float, dict[Buffer, int]] | None:
    """What it costs, and first rows; of places that cost the same the lowest one (``up`` 1), or, of all but the first
    buffer, the highest (-1). None if there is no room for one of them."""
    placed: dict[Buffer, int] = {}

    def used(buffer: Buffer, first: int) -> range:
        return range(first // bank, (first + buffer.all_rows - 1) // bank + 1)

    def cost(buffer: Buffer, first: int) -> float:
        mine = used(buffer, first)
        apart, price = costs.within.get(buffer, (0, 0))
        total = price * _in_one_bank(buffer, first, bank, apart) if apart else 0.0
        for other, price in costs.between.get(buffer, {}).items():
            if other in placed:
                theirs = used(other, placed[other])
                total += price * max(0, min(mine.stop, theirs.stop) - max(mine.start, theirs.start))
        return total

    whole = 0.0
    for buffer in order:
        starts = {*range(0, rows, bank), *(first + other.all_rows for other, first in placed.items())}
        if up < 0:
            starts |= {*range(bank - buffer.all_rows % bank, rows, bank)}
            starts |= {first - buffer.all_rows for first in placed.values()}
        if buffer in costs.within:
            apart, _ = costs.within[buffer]
            half = apart if apart < buffer.rows else buffer.all_rows // 2
            starts |= {*range(bank - half % bank, rows, bank)}
        free = [
            first
            for first in starts
            if 0 <= first <= rows - buffer.all_rows
            and all(first + buffer.all_rows <= at or at + other.all_rows <= first for other, at in placed.items())
        ]
        if not free:
            return None
        placed[buffer] = min(free, key=lambda first: (cost(buffer, first), up * first if placed else first))
        whole += cost(buffer, placed[buffer])
    return whole, placed


def _in_one_bank(buffer: Buffer, first: int, bank: int, apart: int) -> float:
    """Rows that are in one bank with the row ``apart`` behind them, in parts of so many: of halves of all
    slots, or of all slots but the last."""
    alone = max(bank - apart, 0)  # the first rows of a bank, behind which the other row is in it

    def before(row: int) -> int:
        return row // bank * alone + min(row % bank, alone)

    last = first + buffer.all_rows - (apart if apart == buffer.rows else 0)
    starts = range(first, last, buffer.rows)
    return sum(before(start + apart) - before(start) for start in starts) / apart
