"""Loops whose loads are issued a round ahead of what they are for.

The sequencer hands on instructions in their order. If those of a round for one unit are more than its queue holds, the
loads of the next round would be issued when most of them are done. So they are issued before them.
"""

from __future__ import annotations

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type
from sley.runtime.tile.passes.order import UNITS
from sley.runtime.tile.types import INDEX


def loads_ahead(function: Function, config: ChipConfig) -> frozenset[Op]:
    """The loops of a function for which this is so, and that allow it: no loop is inside, and the places of all loads
    follow from the round's number."""
    return frozenset(
        op
        for op in function.body.walk()
        if op.body is not None and op.attributes["count"] > 1 and _allows(op.body, config) and _fills(op.body, config)
    )


def is_load(op: Op) -> bool:
    """Whether the unit Load does it."""
    return UNITS.get(op.name) is Unit.LOAD


def _allows(body: Block, config: ChipConfig) -> bool:
    loads = [op for op in body.ops if is_load(op)]
    if not loads or len(loads) > config.unit_queue // 4 or any(op.body is not None for op in body.ops):
        return False
    if any(op.name != "load" for op in loads):
        return False
    carried = {value for value in body.parameters[1:] if value.type == INDEX}
    makers = {result: op for op in body.ops for result in op.results}

    def follows(value: Value) -> bool:
        if value in carried:
            return False
        return value not in makers or all(follows(operand) for operand in makers[value].operands)

    return all(follows(index) for op in loads for index in op.operands[1:])


def _fills(body: Block, config: ChipConfig) -> bool:
    return sum(products(op, config) for op in body.ops if op.name == "dot") * 2 > config.unit_queue


def products(dot: Op, config: ChipConfig) -> int:
    """Products of N columns and a fold of K, two instructions each."""
    a, b, _ = dot.operands
    folds = -(-tile_shape(a)[1] // config.fold_depth(tile_type(a).dtype))
    return folds * -(-tile_shape(b)[1] // config.array)
