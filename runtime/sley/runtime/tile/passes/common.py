"""What is computed twice from the same operands is computed once.

Operations of tiles and indices have no effect but their result, so a second one with the same operands and attributes
is left out; what is in a loop may be that of a block around it. So is a second load from the same place, if the
function stores nothing to that array.
"""

from __future__ import annotations

from collections.abc import Hashable

from sley.runtime.tile.ir import Block, Function, Op, Value
from sley.runtime.tile.operations import LOADS, STORES

EFFECTS = (*STORES, "for", "yield")


def share_common(function: Function) -> None:
    """Runs the pass, in place."""
    stored = {op.operands[0] for op in function.body.walk() if op.name in STORES}
    _block(function.body, {}, {}, stored)


def _block(block: Block, known: dict[Hashable, Value], same: dict[Value, Value], stored: set[Value]) -> None:
    known, kept = dict(known), []
    for op in block.ops:
        op.operands = [same.get(operand, operand) for operand in op.operands]
        if op.body is not None:
            _block(op.body, known, same, stored)
        if op.name not in EFFECTS and not (op.name in LOADS and op.operands[0] in stored):
            key = _key(op)
            if key in known:
                same[op.result] = known[key]
                continue
            known[key] = op.result
        kept.append(op)
    block.ops = kept


def _key(op: Op) -> Hashable:
    return op.name, tuple(op.operands), repr(sorted(op.attributes.items())), op.result.type
