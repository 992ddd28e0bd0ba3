"""Which unit waits for which, with what semaphore.

Units work beside each other, each on its own operations in their order. An operation must come behind another one of
a different unit if one of them writes the buffer, or the array in memory, that the other uses: in the same round of a
loop, or, as slots come again, some rounds later. So must a load by a list that a load has brought. Each pair of units
and each distance in rounds has a semaphore: the first unit signals it behind an operation, the second one waits for it
before one, as often. Both pass the signals in the same order, so what is needed by an earlier wait is not waited for
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from sley.abi.faults import Unit
from sley.abi.instructions import SEMAPHORE_MAX, SEMAPHORES
from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.operations import STORES, UNITS, RoomError
from sley.runtime.tile.passes.buffers import Buffer
from sley.runtime.tile.passes.placement import Placement
from sley.runtime.tile.passes.runs import LISTS
from sley.runtime.tile.types import ArrayType, TileType

Channel = tuple[Unit, Unit, int, bool, bool]
"""Who signals, who waits, and how many rounds later; 0 in the same round. Then, of both, whether they do it a round
ahead of the other operations of a loop: so both sides of a channel keep the order of rounds."""
Early = Mapping[Op, frozenset[Op]]
"""By loops, operations of their bodies that are issued a round ahead."""


class Segment(IntEnum):
    """When an operation is issued in a round of a loop of which some are a round ahead: of the next round, loads and
    products; of this one, what comes before its first product; of the next one, the others; the rest of this one."""

    LOADS_AHEAD = 0
    BEFORE = 1
    AHEAD = 2
    BEHIND = 3


AHEAD = (Segment.LOADS_AHEAD, Segment.AHEAD)
Moment = tuple[Segment, int]
"""When an operation is issued in a round, and its number."""
Time = tuple[int, Segment, int]
"""The same, with the round, counted from the one at hand."""


def segments(block: Block, ahead: frozenset[Op]) -> list[Segment]:
    """Of the operations of a block, of which some are issued a round ahead."""
    found, product = list[Segment](), False
    for op in block.ops:
        product |= op.name == "dot" and op not in ahead
        if op in ahead:
            loads = UNITS.get(op.name) in (Unit.LOAD, Unit.MATRIX)
            found.append(Segment.LOADS_AHEAD if loads else Segment.AHEAD)
        else:
            found.append(Segment.BEHIND if product else Segment.BEFORE)
    return found


class OrderError(RoomError):
    """More order than the semaphores of a core keep."""


@dataclass(frozen=True)
class Access:
    """What an operation does with a buffer, or with an array in memory. ``ahead``: it reads a list of numbers, which a
    unit does before the operations in front of it are done.
    """

    unit: Unit
    place: Buffer | Value
    writes: bool
    ahead: bool = False

    def apart(self, other: Access) -> bool:
        """Whether the order of units does not keep that of both."""
        return self.unit is not other.unit or self.ahead or other.ahead


@dataclass
class Order:
    """Of one block. ``when``: segments of its operations. ``pairs``: channels, with the numbers of the operation behind
    which they are signalled, and of the one that waits.
    """

    when: list[Segment]
    pairs: list[tuple[Channel, int, int]] = field(default_factory=list)

    @cached_property
    def signals(self) -> dict[int, list[Channel]]:
        """By operations, what is signalled behind them."""
        return _grouped((signal, channel) for channel, signal, _ in self.pairs)

    @cached_property
    def waits(self) -> dict[int, list[Channel]]:
        """By operations, what they wait for."""
        return _grouped((wait, channel) for channel, _, wait in self.pairs)

    @cached_property
    def counts(self) -> Counter[Channel]:
        """Signals of each channel in a round."""
        return Counter(channel for channel, *_ in self.pairs)


def _grouped(pairs: Iterable[tuple[int, Channel]]) -> dict[int, list[Channel]]:
    found: dict[int, list[Channel]] = {}
    for number, channel in pairs:
        found.setdefault(number, []).append(channel)
    return found


def accesses(op: Op, placement: Placement) -> Iterator[Access]:
    """Those of an operation; of a loop, all of its body."""
    if op.body is not None:
        for inner in op.body.ops:
            yield from accesses(inner, placement)
        return
    unit = UNITS.get(op.name)
    if unit is None:
        return
    listed = op.operands[LISTS[op.name]] if op.name in LISTS else None
    for operand in op.operands:
        if isinstance(operand.type, TileType):
            yield Access(unit, placement.of[operand], False, operand is listed)
        elif isinstance(operand.type, ArrayType):
            yield Access(unit, operand, op.name in STORES)
    for result in op.results:
        yield Access(unit, placement.of[result], True)


def _of(access: Access, loops: set[Op]) -> bool:
    """Whether the buffer is made in one of these loops. The semaphores of that loop keep its order from one run of the
    loop to the next, too: they are where the last round has left them."""
    return isinstance(access.place, Buffer) and access.place.loop in loops


def orders(function: Function, placement: Placement, early: Early) -> dict[Block, Order]:
    """The order of each block of a function. Raises ``TileError`` if semaphores do not count that far."""
    found: dict[Block, Order] = {}

    def visit(block: Block, loop: Op | None) -> None:
        for op in block.ops:
            if op.body is not None:
                visit(op.body, op)
        ahead = early.get(loop, frozenset()) if loop else frozenset()
        found[block] = order(block, loop, placement, ahead, found)

    visit(function.body, None)
    for made in found.values():
        for (_, _, turns, _, _), count in made.counts.items():
            if turns * count > SEMAPHORE_MAX:
                raise OrderError(f"{count} operations of one round wait for the rounds before; split the loop")
    if sum(len(made.counts) for made in found.values()) > SEMAPHORES:
        raise OrderError(
            f"its units wait for each other in more ways than there are semaphores, {SEMAPHORES}; split it"
        )
    return found


def order(
    block: Block,
    loop: Op | None,
    placement: Placement,
    ahead: frozenset[Op] = frozenset(),
    inside: Mapping[Block, Order] | None = None,
) -> Order:
    """What the operations of a block need of each other; ``loop``: whose body it is; ``ahead``: those that are issued
    a round ahead; ``inside``: of the bodies of loops in it."""
    inner = {op for op in block.walk() if op.body is not None}
    made = [{access for access in accesses(op, placement) if not _of(access, inner)} for op in block.ops]
    needs: dict[Channel, dict[int, int]] = {}
    for late, users in enumerate(made):
        for early, before in enumerate(made):
            for a in before:
                for b in users:
                    if a.place is not b.place or not a.apart(b) or not (a.writes or b.writes):
                        continue
                    if _awaited(block.ops[late], a, b, placement, inside or {}):
                        continue
                    stages = block.ops[early] in ahead, block.ops[late] in ahead
                    if early < late:
                        channel = (a.unit, b.unit, 0, *stages)
                    elif loop is not None:
                        turns = a.place.slots if isinstance(a.place, Buffer) and a.place.loop is loop else 1
                        channel = (a.unit, b.unit, turns, *stages)
                    else:
                        continue
                    latest = needs.setdefault(channel, {})
                    latest[late] = max(latest.get(late, -1), early)
    result = Order(when=segments(block, ahead))
    implied = _implied(needs, result.when)
    for channel, latest in needs.items():
        last = -1
        for late in sorted(latest):
            if latest[late] > last and (channel, late) not in implied:
                last = latest[late]
                result.pairs.append((channel, last, late))
    return result


def _awaited(loop: Op, before: Access, inner: Access, placement: Placement, inside: Mapping[Block, Order]) -> bool:
    """Whether each operation of a loop that uses a place waits, in its round, for one in the loop of the unit of an
    operation in front of the loop: then it comes behind that, too."""
    if loop.body is None or loop.body not in inside or before.ahead or inner.ahead or before.unit is inner.unit:
        return False
    known = inside[loop.body]
    waits = [
        (known.when[wait], wait)
        for (first, second, turns, _, _), _, wait in known.pairs
        if (first, second, turns) == (before.unit, inner.unit, 0)
    ]
    for number, op in enumerate(loop.body.ops):
        if not any(use.place is inner.place and use.unit is inner.unit for use in accesses(op, placement)):
            continue
        moment = known.when[number], number
        if op.body is not None or not any(_first(wait, moment) for wait in waits):
            return False
    return True


def _first(one: Moment, other: Moment) -> bool:
    """Whether an operation of a unit is issued before another one of its round, or is the same."""
    if (one[0] in AHEAD) != (other[0] in AHEAD):
        return one[0] in AHEAD
    return one <= other


def _implied(needs: Mapping[Channel, Mapping[int, int]], when: Sequence[Segment]) -> set[tuple[Channel, int]]:
    """Channels and operations that wait for what other waits of the same unit for the same other one imply: units do
    their operations in order, so with one of them those before it are done. ``when``: segments of the operations.

    What is ahead is issued for the first round in front of the loop, behind all of the loop's run before, and not in
    its last round. So what is known of what is ahead says something of all; what is known of the others says
    something of what was ahead a round before. And waits of what is ahead say nothing to the others of the same round.
    """
    found: set[tuple[Channel, int]] = set()
    for pair in {channel[:2] for channel in needs}:
        wanted = [
            (when[late], late, (channel[4] - channel[2] - channel[3], when[early], early), channel)
            for channel, latest in needs.items()
            if channel[:2] == pair
            for late, early in latest.items()
        ]
        wanted.sort(key=lambda wait: (wait[0], wait[1], [-number for number in wait[2]]))  # what says most comes first
        for number, (segment, late, moment, channel) in enumerate(wanted):
            before: list[Time] = [other for was, _, other, _ in wanted[:number] if was not in AHEAD or segment in AHEAD]
            before += [(other[0] - 1, *other[1:]) for _, _, other, _ in wanted]
            if any(_implies(other, moment) for other in before):
                found.add((channel, late))
    return found


def _implies(known: Time, moment: Time) -> bool:
    """Whether an operation of a unit is done, if another one of it is known to be."""
    if moment[1] in AHEAD and known[1] not in AHEAD:
        return moment[0] < known[0]
    return moment <= known
