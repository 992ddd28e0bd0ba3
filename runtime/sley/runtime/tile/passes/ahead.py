"""Operations that are issued rounds ahead of what they are for.

The sequencer hands on instructions in their order, and so do units. If those of a round for one unit are as many as
its queue holds, or for the array half as many, the loads of the next round would be issued when some of them are done.
And a product whose operands are loaded would wait behind one that needs what the vector unit makes of it. So both are
issued a round before the others: loads, or loads and the products that need nothing else. With them goes what the
vector unit makes of these products for others, if it can: then each unit works on one product while the other one works
on the other. Loads are then two rounds ahead, as results that go through memory would hold up those of the next round.
Rounds are those of all loops that are one in the other, if they can be joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type
from sley.runtime.tile.operations import LOADS, UNITS
from sley.runtime.tile.passes.buffers import Buffer
from sley.runtime.tile.passes.order import Early, accesses, order
from sley.runtime.tile.passes.partials import in_pairs, partials_of, reduced_shape
from sley.runtime.tile.passes.placement import Placement
from sley.runtime.tile.passes.rounds import Rounds, Turn, joined, rounds_of
from sley.runtime.tile.types import INDEX, TileType


class Ahead(IntEnum):
    """What may be issued a round ahead: nothing, operations of a loop that has none in it, or, of loops one in the
    other that are joined, those of all rounds."""

    NOTHING = 0
    LOOPS = 1
    JOINED = 2


def early_operations(
    function: Function, placement: Placement, config: ChipConfig, ahead: Ahead = Ahead.JOINED
) -> Early:
    """By loops, rounds of which some operations are issued a round ahead."""
    found: dict[Op, Rounds] = {}

    def visit(block: Block) -> None:
        for op in block.ops:
            if op.body is None:
                continue
            for rounds in (joined(op) if ahead is Ahead.JOINED else None, rounds_of(op)):
                made = _with_ahead(rounds, placement, config) if rounds is not None and rounds.count > 1 else None
                if made is not None:
                    found[op] = made
                    break
            if op not in found or len(found[op].loops) == 1:
                visit(op.body)

    if ahead is not Ahead.NOTHING:
        visit(function.body)
    return found


def _with_ahead(rounds: Rounds, placement: Placement, config: ChipConfig) -> Rounds | None:
    """With the most that can be issued ahead; none if nothing can."""
    body = rounds.loops[-1].body
    assert body is not None
    for early in _candidates(body, config):
        ops = early | _in_front(rounds, early)
        leads = (1,) if all(op.name in LOADS for op in ops) or rounds.count < 3 else (2, 1)
        for lead in leads:
            made = replace(rounds, ahead={op: lead if UNITS[op.name] is Unit.LOAD else 1 for op in ops})
            if _follow(made) and _allowed(made, placement):
                return made
    return None


def _starts(rounds: Rounds) -> dict[Value, Value]:
    """What the innermost loop carries, and what it begins with."""
    inner = rounds.loops[-1]
    assert inner.body is not None
    return dict(zip(inner.body.parameters[1:], inner.operands, strict=True))


def _in_front(rounds: Rounds, early: frozenset[Op]) -> frozenset[Op]:
    """What is done in first rounds and goes with what is early: loads, and what it needs."""
    front, starts = rounds.ops[: rounds.front], _starts(rounds)
    makers = {result: op for op in front for result in op.results}
    found = {op for op in front if UNITS.get(op.name) is Unit.LOAD}
    left = [value for op in (*early, *found) for value in op.operands]
    while left:
        value = left.pop()
        op = makers.get(starts.get(value, value))
        if op is not None and op.name in UNITS and op not in found:
            found.add(op)
            left += op.operands
    return frozenset(found)


def _candidates(body: Block, config: ChipConfig) -> Iterator[frozenset[Op]]:
    """What could be issued ahead, the most first."""
    loads = [op for op in body.ops if UNITS.get(op.name) is Unit.LOAD]
    dots = [op for op in body.ops if op.name == "dot"]
    if not loads or any(op.body is not None for op in body.ops) or len(loads) > config.unit_queue // 4:
        return
    makers = {result: op for op in body.ops for result in op.results}
    known = {result for op in (*loads, *(op for op in body.ops if op.name == "part")) for result in op.results}

    def loaded(op: Op) -> bool:
        factors = op.operands[:2]
        return all(value in known or (value not in makers and value not in body.parameters) for value in factors)

    first = [op for op in dots if loaded(op) and op.attributes.get("fresh") == 0]
    later = [op for op in dots if op not in first]
    if first and not all(map(loaded, later)):  # products of one sum are made one behind the other
        for between in _between(body, later):
            yield frozenset((*loads, *first, *between))
        yield frozenset((*loads, *first))
    reduces = any(op.name in ("fold", "reduce") for op in body.ops)
    of_products = sum(products(op, config) for op in dots) * 2
    of_rows = sum(_chunks(op, config) for op in body.ops) if reduces else 0
    if first and of_rows > config.unit_queue:
        yield frozenset((*loads, *first))
    of_rows = 0 if dots else of_rows
    if of_products > config.unit_queue // 2 or of_rows > config.unit_queue:
        yield frozenset(loads)


def _chunks(op: Op, config: ChipConfig) -> int:
    """Instructions of the vector unit, or about as many."""
    if in_pairs(op, config) and op.attributes["axis"] == 1 and partials_of(op, config) > 1:
        chunks: int = reduced_shape(op)[1] // config.array
        return 3 * chunks // partials_of(op, config)
    if op.name in ("fold", "reduce"):
        return -(-reduced_shape(op)[1] // config.array) if op.attributes["axis"] == 1 else 0
    if op.name != "chain":
        return 0
    shape = op.attributes["shape"]
    tiles = [value for value in op.operands if isinstance(value.type, TileType)]
    if registers := op.attributes.get("registers"):
        instructions: int = min(shape[0], -(-shape[1] // config.array))
        return (1 + len(registers)) * instructions
    return -(-shape[1] // config.array) if any(tile_shape(value) != shape for value in tiles) else 1


def _between(body: Block, last: list[Op]) -> Iterator[frozenset[Op]]:
    """What the vector unit makes for the factors of the last products: as little as it can be, and all that these
    products have no part in."""
    made = body.ops[:-1]
    makers = {result: op for op in made for result in op.results}
    ends = {value: makers.get(end) for value, end in zip(body.parameters[1:], body.ops[-1].operands, strict=True)}
    late, before = {*last}, 0
    while len(late) > before:
        before = len(late)
        sources = {result for op in late for result in op.results} | {value for value, op in ends.items() if op in late}
        late |= {op for op in made if not sources.isdisjoint(op.operands)}
    least, left = set[Op](), [value for op in last for value in op.operands[:2]]
    while left:
        value = left.pop()
        needed = [makers.get(value), ends.get(value)]
        needed += [op for op in made if value in ends and value in op.operands]  # who reads what a loop carries to them
        for op in needed:
            if op is not None and op not in least:
                least.add(op)
                left += op.operands
    if late.isdisjoint(least):
        for found in (least, {*made} - late):
            yield frozenset(op for op in found if UNITS.get(op.name) is Unit.VECTOR)


def _follow(rounds: Rounds) -> bool:
    """Whether the places of all loads ahead follow from the round's number."""
    loads = [op for op in rounds.ahead if UNITS[op.name] is Unit.LOAD]
    carried = {value for loop in rounds.loops if loop.body for value in loop.body.parameters[1:] if value.type == INDEX}
    makers = {result: op for op in rounds.ops for result in op.results}

    def follows(value: Value) -> bool:
        if value in carried:
            return False
        return value not in makers or all(follows(operand) for operand in makers[value].operands)

    return all(op.name == "load" and all(follows(index) for index in op.operands[1:]) for op in loads)


def _allowed(rounds: Rounds, placement: Placement) -> bool:
    """Whether nothing waits for what is issued behind it, but loads, which wait in a queue of their own, for what needs
    none of the loads behind them; they are further ahead than products, which wait for them, and fill their queue. And
    whether operations of one unit that are issued in another order do not need theirs."""
    made = order(rounds, placement)
    others = max((lead for op, lead in rounds.ahead.items() if op.name not in LOADS), default=0)
    for channel, signal, wait in made.pairs:
        apart = made.apart(channel, signal, wait)
        loads = channel.waits is Unit.LOAD and rounds.depth(wait) > others and _needs_no_more(rounds, signal)
        if apart < 0 or (apart == 0 and not loads and made.moment(signal) >= made.moment(wait)):
            return False
    uses = [(number, access) for number, op in enumerate(rounds.ops) for access in accesses(op, placement)]
    for one, a in uses:
        for other, b in uses:
            lead = rounds.depth(one) - rounds.depth(other)
            if lead <= 0 or a.unit is not b.unit or a.place is not b.place or not (a.writes or b.writes):
                continue
            # Before the next round's, as without anything ahead:
            kept = lead == 1 and one < other and rounds.segments[other] < rounds.segments[one]
            if not kept and not _alternates(rounds, one, other, a.place):
                return False
    return True


def _needs_no_more(rounds: Rounds, number: int) -> bool:
    """Whether all loads that an operation may need are ahead."""
    behind = rounds.turn(number) is Turn.LAST
    return all(
        op in rounds.ahead or UNITS.get(op.name) is not Unit.LOAD or (rounds.turn(place) is Turn.LAST and not behind)
        for place, op in enumerate(rounds.ops)
    )


def _alternates(rounds: Rounds, early: int, late: int, place: object) -> bool:
    """Whether an operation uses another slot than one of the rounds that it is ahead of."""
    turns = rounds.turn(early), rounds.turn(late)
    if turns[1] is Turn.FIRST or not isinstance(place, Buffer):
        return False
    if turns == (Turn.EACH, Turn.EACH):
        return place.loop is rounds.loops[-1] and place.slots > rounds.depth(early) - rounds.depth(late)
    return place.loop is rounds.loops[-2] and place.slots > 1


def products(dot: Op, config: ChipConfig) -> int:
    """Products of N columns and a fold of K, two instructions each."""
    a, b, _ = dot.operands
    folds = -(-tile_shape(a)[1] // config.fold_depth(tile_type(a).dtype))
    return folds * -(-tile_shape(b)[1] // config.array)
