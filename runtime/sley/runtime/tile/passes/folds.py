"""Reductions take element-wise operations with them.

Before: a ``reduce`` of what a chain makes for it alone. After: a ``fold``, which does both in one pass: the chain's
last stage joins what it has with the result so far, along a row, or with a row register, along a column. Results so far
are in the accumulators, of which an instruction reads A and one more: if B is there, too, and A is not, they exchange
their places. Of rows whose elements are no multiple of N the last ones would be joined with what lies behind them, so
they are left as they are.
"""

from __future__ import annotations

from dataclasses import replace

from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Late, Operand
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.runtime.tile.ir import Block, Function, Op, tile_shape, tile_type, uses
from sley.runtime.tile.passes.assignment import REVERSED
from sley.runtime.tile.passes.chains import in_scratchpad
from sley.runtime.tile.types import TileType, wide


def fold_chains(function: Function, lanes: int) -> None:
    """Runs the pass, in place. ``lanes``: N of the chip."""
    users = uses(function.body)
    for block in function.body.blocks():
        made = {op.result: op for op in block.ops if op.name == "chain"}
        for op in list(block.ops):
            chain = made.get(op.operands[0]) if op.name == "reduce" else None
            if chain is not None and len(users[chain.result]) == 1 and _joins(chain, op, lanes):
                _fold(block, chain, op)


def _joins(chain: Op, op: Op, lanes: int) -> bool:
    stages: Chain = chain.attributes["stages"]
    dtype = chain.attributes["dtype"]
    if wide(dtype) is not dtype or dtype is not tile_type(op.result).dtype or chain.attributes["iota"]:
        return False
    if not any(isinstance(operand.type, TileType) for operand in chain.operands):
        return False
    if dtype is not (ElementType.FP32 if stages.becomes_float(dtype) else chain.attributes["computed"]):
        return False
    if stages.binary2 is not BinaryOp.NONE or stages.reduce is not Reduction.NONE:
        return False
    if op.attributes["axis"] == 0:
        return True
    if tile_shape(op.operands[0])[1] % lanes:
        return False
    if free_late(chain) is None:
        _exchange(chain)
    return free_late(chain) is not None


def _exchange(chain: Op) -> None:
    """A in the scratchpad and B in the accumulators exchange their places, if they can, so that C is one of the
    accumulators."""
    stages: Chain = chain.attributes["stages"]
    reads = any(stages.reads(source) for source in Late)
    if stages.binary_operand is not Operand.B or stages.binary not in REVERSED or reads:
        return
    a, b, *others = chain.operands
    if tile_type(a).dtype is ElementType.BF16 and tile_type(b).dtype is ElementType.FP32:
        chain.operands = [b, a, *others]
        chain.attributes["stages"] = replace(stages, binary=REVERSED[stages.binary])


def free_late(op: Op) -> tuple[Operand, Late] | None:
    """The late operand that a chain has left for the results so far, which are in the accumulators: B, or C if B is in
    the scratchpad. None if there is none."""
    stages: Chain = op.attributes["stages"]
    left = [late for late in (Operand.LATE0, Operand.LATE1) if not stages.late_uses(late)]
    if not left or stages.uses_c:
        return None
    if not stages.uses_b:
        return left[0], Late.B
    b = tile_type(op.operands[1]).dtype
    return (left[0], Late.C) if in_scratchpad(b) else None


def _fold(block: Block, chain: Op, op: Op) -> None:
    block.ops.remove(chain)
    op.name, op.operands = "fold", chain.operands
    op.attributes = {**chain.attributes, **op.attributes}
