"""Which unit waits for which, with what semaphore.

Units work beside each other, each on its own operations in their order. An operation must come behind another one of
a different unit if one of them writes the buffer, or the array in memory, that the other uses: in the same round of a
loop, or, as slots come again, some rounds later. So must a load by a list that a load has brought. Each pair of units
and each distance in rounds has a semaphore: the first unit signals it behind an operation, the second one waits for it
before one, as often. Both pass the signals in the same order, so what is needed by an earlier wait is not waited for
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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
    """For the operations of one block, by their number: the channels that are signalled behind them, and that they
    wait for.

    ``counts``: signals of each channel in a round.
    """

    signals: dict[int, list[Channel]] = field(default_factory=dict)
    waits: dict[int, list[Channel]] = field(default_factory=dict)
    counts: dict[Channel, int] = field(default_factory=dict)


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
        found[block] = order(block, loop, placement, early.get(loop, frozenset()) if loop else frozenset())
        for op in block.ops:
            if op.body is not None:
                visit(op.body, op)

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


def order(block: Block, loop: Op | None, placement: Placement, ahead: frozenset[Op] = frozenset()) -> Order:
    """What the operations of a block need of each other; ``loop``: whose body it is; ``ahead``: those that are issued
    a round ahead."""
    inner = {op for op in block.walk() if op.body is not None}
    made = [{access for access in accesses(op, placement) if not _of(access, inner)} for op in block.ops]
    needs: dict[Channel, dict[int, int]] = {}
    for late, users in enumerate(made):
        for early, before in enumerate(made):
            for a in before:
                for b in users:
                    if a.place is not b.place or not a.apart(b) or not (a.writes or b.writes):
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
    result = Order()
    implied = _implied(needs)
    for channel, latest in needs.items():
        last = -1
        for late in sorted(latest):
            if latest[late] > last and (channel, late) not in implied:
                last = latest[late]
                result.signals.setdefault(last, []).append(channel)
                result.waits.setdefault(late, []).append(channel)
                result.counts[channel] = result.counts.get(channel, 0) + 1
    return result


Moment = tuple[int, bool, int]
"""When an operation is done: the round, counted from the one at hand; whether it is no early one, which come first in
a round; its number."""


def _implied(needs: Mapping[Channel, Mapping[int, int]]) -> set[tuple[Channel, int]]:
    """Channels and operations that wait for what other waits of the same unit for the same other one imply: units do
    their operations in order, so with one of them those before it are done. Early operations of a loop's first round
    come behind all of the run of the loop before, and in its last round there are none: so what is known of early ones
    says something of all, but what is known of the others says nothing of early ones, and waits of early ones say
    something of the round behind alone."""
    found: set[tuple[Channel, int]] = set()
    for pair in {channel[:2] for channel in needs}:
        wanted = sorted(
            (not channel[4], late, (channel[4] - channel[2] - channel[3], not channel[3], early), channel)
            for channel, latest in needs.items()
            if channel[:2] == pair
            for late, early in latest.items()
        )
        for number, (stage, late, moment, channel) in enumerate(wanted):
            before: list[Moment] = [other for was, _, other, _ in wanted[:number] if was == stage]
            before += [(other[0] - 1, *other[1:]) for _, _, other, _ in wanted]
            if any(moment <= other and (moment[1] or not other[1]) for other in before):
                found.add((channel, late))
    return found
