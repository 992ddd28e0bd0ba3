"""Which unit waits for which, with what semaphore.

Units work beside each other, each on its own operations in their order. An operation must come behind another one of
a different unit if one of them writes the buffer, or the array in memory, that the other uses: in the same round of a
loop, or, as slots come again, some rounds later. So must a load by a list that a load has brought. Each pair of units
and each distance in rounds has a semaphore: the first unit signals it behind an operation, the second one waits for it
before one, as often. Both pass the signals in the same order, so what is needed by an earlier wait is not waited for
again.

Where loops are joined, what is done in the first or the last rounds of the innermost one is waited for, and waits, once
in all of its rounds: others then signal it in the last one, and wait for it in the first one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sley.abi.faults import Unit
from sley.abi.instructions import SEMAPHORE_MAX, SEMAPHORES
from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.operations import STORES, UNITS, RoomError
from sley.runtime.tile.passes.buffers import Buffer
from sley.runtime.tile.passes.placement import Placement
from sley.runtime.tile.passes.rounds import Rounds, Segment, Turn, rounds_of
from sley.runtime.tile.passes.runs import LISTS
from sley.runtime.tile.types import ArrayType, TileType

Early = Mapping[Op, Rounds]
"""By loops, or by the outermost of loops that are joined, rounds of which some operations are issued a round ahead."""
Moment = tuple[Segment, int]
"""When an operation is issued in a round, and its number."""
Time = tuple[int, Segment, int, int]
"""The same, with the round, counted from the one at hand, and last how many rounds ahead that is."""


class Channel(NamedTuple):
    """Which unit signals, which waits, and how many rounds later; 0 in the same round. Then how many rounds ahead of
    the other operations of a loop both do it: so both sides keep the order of rounds. ``once``: they do it once in all
    rounds of the innermost loop, of which ``turns`` then counts the repetitions."""

    signals: Unit
    waits: Unit
    turns: int
    signals_ahead: int
    waits_ahead: int
    once: bool = False

    @property
    def units(self) -> tuple[Unit, Unit]:
        """Both."""
        return self.signals, self.waits


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
    """Of the operations of ``rounds``. ``pairs``: channels, with the numbers of the operation behind which they are
    signalled, and of the one that waits.
    """

    rounds: Rounds
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

    def moment(self, number: int) -> Moment:
        """When an operation is issued."""
        return self.rounds.segments[number], number

    def apart(self, channel: Channel, signal: int, wait: int) -> int:
        """Rounds from the one in which an operation is issued to the one in which what waits for it is."""
        rounds = self.rounds
        between = channel.turns
        if channel.once:
            last = rounds.inner - 1
            between = between * rounds.inner + last * (rounds.turn(wait) is Turn.LAST)
            between -= last * (rounds.turn(signal) is not Turn.FIRST)
        return between + channel.signals_ahead - channel.waits_ahead


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
    """The order of each block of a function; of loops that are joined that of all, by the outermost one's body. Raises
    ``TileError`` if semaphores do not count that far."""
    found: dict[Block, Order] = {}

    def visit(block: Block, rounds: Rounds) -> None:
        for op in rounds.ops:
            if op.body is not None:
                visit(op.body, early.get(op, rounds_of(op)))
        found[block] = order(rounds, placement, found)

    visit(function.body, Rounds(tuple(function.body.ops)))
    for made in found.values():
        for channel, count in made.counts.items():
            if channel.turns * count > SEMAPHORE_MAX:
                raise OrderError(
                    f"{count} operations of one round wait for the rounds before, and semaphores count to "
                    f"{SEMAPHORE_MAX}; do less in a round, or unroll less"
                )
    if sum(len(made.counts) for made in found.values()) > SEMAPHORES:
        raise OrderError(
            f"its units wait for each other in more ways than there are semaphores, {SEMAPHORES}; make two "
            "kernels of it, or a schedule with fewer loops"
        )
    return found


def order(rounds: Rounds, placement: Placement, inside: Mapping[Block, Order] | None = None) -> Order:
    """What the operations of rounds need of each other; ``inside``: of the bodies of loops in them."""
    inner = {op for outer in rounds.ops if outer.body is not None for op in (outer, *outer.body.walk()) if op.body}
    made = [{access for access in accesses(op, placement) if not _of(access, inner)} for op in rounds.ops]
    needs: dict[Channel, dict[int, int]] = {}
    for late, users in enumerate(made):
        for early, before in enumerate(made):
            for a in before:
                for b in users:
                    if a.place is not b.place or not a.apart(b) or not (a.writes or b.writes):
                        continue
                    if _awaited(rounds.ops[late], a, b, placement, inside or {}):
                        continue
                    once = not rounds.turn(early) is rounds.turn(late) is Turn.EACH
                    turns = 0 if early < late else _turns(a.place, rounds, once)
                    if early >= late and not rounds.loops:
                        continue
                    ahead = rounds.depth(early), rounds.depth(late)
                    latest = needs.setdefault(Channel(a.unit, b.unit, turns, *ahead, once), {})
                    latest[late] = max(latest.get(late, -1), early)
    result = Order(rounds)
    implied = _implied(needs, result)
    for channel, latest in needs.items():
        last = -1
        for late in sorted(latest):
            if latest[late] > last and (channel, late) not in implied:
                last = latest[late]
                result.pairs.append((channel, last, late))
    return result


def _turns(place: Buffer | Value, rounds: Rounds, once: bool) -> int:
    """After how many rounds a place is used again, of the innermost loop or of the one around it."""
    loops = rounds.loops[-2:-1] if once else rounds.loops[-1:]
    return place.slots if isinstance(place, Buffer) and place.loop in loops else 1


def _awaited(loop: Op, before: Access, inner: Access, placement: Placement, inside: Mapping[Block, Order]) -> bool:
    """Whether each operation of a loop that uses a place waits, in its round, for one in the loop of the unit of an
    operation in front of the loop: then it comes behind that, too."""
    if loop.body is None or loop.body not in inside or before.ahead or inner.ahead or before.unit is inner.unit:
        return False
    known = inside[loop.body]
    waits = [
        (-channel.waits_ahead, known.moment(wait))
        for channel, _, wait in known.pairs
        if channel.units == (before.unit, inner.unit) and channel.turns == 0 and not channel.once
    ]
    for number, op in enumerate(known.rounds.ops):
        if not any(use.place is inner.place and use.unit is inner.unit for use in accesses(op, placement)):
            continue
        at = -known.rounds.depth(number), known.moment(number)
        if not any(wait <= at for wait in waits) and not _awaited(op, before, inner, placement, inside):
            return False
    return True


@dataclass(frozen=True)
class _Wait:
    """One that may be needed. ``at``: when it is issued; ``known``: what is done then, counted from the round in which
    it is issued. ``round``: that round, of those of the innermost loop, if it is one of them alone."""

    channel: Channel
    late: int
    at: Moment
    known: Time
    round: int | None

    def rounds_until(self, other: _Wait, inner: int) -> int | None:
        """From the last time that this is surely issued before another one of its unit, in rounds; none if that may be
        issued and this not. ``inner``: rounds of the innermost loop."""
        least = max(int(self.at > other.at), self.channel.waits_ahead - other.channel.waits_ahead)
        if self.round is None:
            return least
        if other.round is None:
            return None
        apart = (other.round - self.round) % inner
        return apart if apart >= least else apart + inner


def _implied(needs: Mapping[Channel, Mapping[int, int]], made: Order) -> set[tuple[Channel, int]]:
    """Channels and operations that wait for what other waits of the same unit for the same other one imply: units do
    their operations in order, so with one of them those before it are done.

    What is ahead is issued for the first rounds in front of the loop, behind all of the loop's run before, and not in
    its last rounds. So what is known of what is ahead says something of all; what is known of the others says
    something of what was ahead rounds before. And waits of what is ahead say nothing to the others of the same round.
    """
    found: set[tuple[Channel, int]] = set()
    inner = made.rounds.inner
    for pair in {channel.units for channel in needs}:
        wanted = [
            _Wait(
                channel,
                late,
                made.moment(late),
                (-made.apart(channel, early, late), *made.moment(early), channel.signals_ahead),
                (inner - 1) * (made.rounds.turn(late) is Turn.LAST) - channel.waits_ahead if channel.once else None,
            )
            for channel, latest in needs.items()
            if channel.units == pair
            for late, early in latest.items()
        ]
        wanted.sort(key=lambda wait: (wait.at, [-number for number in wait.known]))  # what says most comes first
        for number, wait in enumerate(wanted):
            for place, other in enumerate(wanted):
                until = other.rounds_until(wait, inner)
                if until is None:
                    continue
                if until == 0 and place >= number:
                    until = 1 if other.round is None else inner
                if _implies((other.known[0] - until, *other.known[1:]), wait.known):
                    found.add((wait.channel, wait.late))
                    break
    return found


def _implies(known: Time, moment: Time) -> bool:
    """Whether an operation of a unit is done, if another one of it is known to be."""
    ahead = moment[3] - known[3]
    return moment[0] + ahead <= known[0] if ahead > 0 else moment[:3] <= known[:3]
