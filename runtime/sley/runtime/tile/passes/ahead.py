"""Operations that are issued a round ahead of what they are for.

The sequencer hands on instructions in their order, and so do units. If those of a round for one unit are more than its
queue holds, the loads of the next round would be issued when most of them are done. And a product whose operands are
loaded would wait behind one that needs what the vector unit makes of it. So both are issued a round before the others:
loads, or loads and the products that need nothing else. With them goes what the vector unit makes of these products
for others, if it can: then each unit works on one product while the other one works on the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type
from sley.runtime.tile.operations import LOADS, UNITS
from sley.runtime.tile.passes.order import Early, accesses, order, segments
from sley.runtime.tile.passes.placement import Placement
from sley.runtime.tile.types import INDEX


def early_operations(function: Function, placement: Placement, config: ChipConfig) -> Early:
    """By loops, what of their bodies is issued a round ahead."""
    found: dict[Op, frozenset[Op]] = {}
    for op in function.body.walk():
        if op.body is None or op.attributes["count"] < 2:
            continue
        for early in _candidates(op.body, config):
            if _allowed(op, early, placement):
                found[op] = early
                break
    return found


def _candidates(body: Block, config: ChipConfig) -> Iterator[frozenset[Op]]:
    """What could be issued ahead, the most first."""
    loads = [op for op in body.ops if UNITS.get(op.name) is Unit.LOAD]
    dots = [op for op in body.ops if op.name == "dot"]
    if not loads or not _follow(body, loads) or len(loads) > config.unit_queue // 4:
        return
    makers = {result: op for op in body.ops for result in op.results}
    known = {result for op in loads for result in op.results}

    def needs_nothing(op: Op) -> bool:
        factors = op.operands[:2]
        outside = all(value in known or (value not in makers and value not in body.parameters) for value in factors)
        return outside and op.attributes.get("fresh") == 0

    first = [op for op in dots if needs_nothing(op)]
    if first and len(first) < len(dots):
        for between in _between(body, [op for op in dots if op not in first]):
            yield frozenset((*loads, *first, *between))
        yield frozenset((*loads, *first))
    if sum(products(op, config) for op in dots) * 2 > config.unit_queue:
        yield frozenset(loads)


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


def _follow(body: Block, loads: list[Op]) -> bool:
    """Whether the places of all loads follow from the round's number, and no loop is inside."""
    if any(op.body is not None for op in body.ops) or any(op.name != "load" for op in loads):
        return False
    carried = {value for value in body.parameters[1:] if value.type == INDEX}
    makers = {result: op for op in body.ops for result in op.results}

    def follows(value: Value) -> bool:
        if value in carried:
            return False
        return value not in makers or all(follows(operand) for operand in makers[value].operands)

    return all(follows(index) for op in loads for index in op.operands[1:])


def _allowed(loop: Op, early: frozenset[Op], placement: Placement) -> bool:
    """Whether nothing waits for what is issued behind it, but loads alone for the round before, as they wait in a queue
    of their own; and whether operations of one unit that are issued in another order do not need theirs."""
    assert loop.body is not None
    when = segments(loop.body, early)
    alone = all(op.name in LOADS for op in early)
    for (_, _, turns, first, second), signal, wait in order(loop.body, loop, placement, early).pairs:
        apart = turns + first - second
        if apart < 0 or (apart == 0 and not alone and (when[signal], signal) >= (when[wait], wait)):
            return False
    made = [(number, access) for number, op in enumerate(loop.body.ops) for access in accesses(op, placement)]
    for one, a in made:
        for other, b in made:
            if loop.body.ops[one] not in early or loop.body.ops[other] in early or a.unit is not b.unit:
                continue
            kept = one < other and when[other] < when[one]  # before the next round's, as without anything ahead
            same = a.place is b.place and (a.writes or b.writes)
            if same and not kept and not placement.alternates(a.place, loop):
                return False
    return True


def products(dot: Op, config: ChipConfig) -> int:
    """Products of N columns and a fold of K, two instructions each."""
    a, b, _ = dot.operands
    folds = -(-tile_shape(a)[1] // config.fold_depth(tile_type(a).dtype))
    return folds * -(-tile_shape(b)[1] // config.array)
