"""Operations that are issued a round ahead of what they are for.

The sequencer hands on instructions in their order, and so do units. If those of a round for one unit are more than its
queue holds, the loads of the next round would be issued when most of them are done. And a product whose operands are
loaded would wait behind one that needs what the vector unit makes of it. So both are issued a round before the others:
loads, or loads and the products that need nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type
from sley.runtime.tile.operations import UNITS
from sley.runtime.tile.passes.order import Early, accesses, order
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
        yield frozenset((*loads, *first))
    if sum(products(op, config) for op in dots) * 2 > config.unit_queue:
        yield frozenset(loads)


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
    """Whether nothing that is issued ahead waits for what comes behind it: for the round before at most if it is loads
    alone, which wait in a queue of their own."""
    assert loop.body is not None
    products_too = any(op.name == "dot" for op in early)
    least = 2 if products_too else 1
    for _, _, turns, first, second in order(loop.body, loop, placement, early).counts:
        if second and not first and turns < least:
            return False
    ahead = [access for op in early for access in accesses(op, placement)]
    behind = [access for op in loop.body.ops if op not in early for access in accesses(op, placement)]
    return not any(
        a.place is b.place and a.unit is b.unit and (a.writes or b.writes) and not placement.alternates(a.place, loop)
        for a in ahead
        for b in behind
    )


def products(dot: Op, config: ChipConfig) -> int:
    """Products of N columns and a fold of K, two instructions each."""
    a, b, _ = dot.operands
    folds = -(-tile_shape(a)[1] // config.fold_depth(tile_type(a).dtype))
    return folds * -(-tile_shape(b)[1] // config.array)
