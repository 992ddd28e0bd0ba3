"""Sums of a ``dot`` that begin as zeros are not written before: its first product replaces what is in their place.

Before: a chain that makes zeros, for a ``dot``, or for loops that carry them to one. After: ``full``, which makes
nothing but room, and the ``dot`` with the attribute ``fresh``: of how many loops around it this must be the first round
for its sums to be zeros; with 0 they always are.
"""

from __future__ import annotations

from dataclasses import dataclass

from sley.abi.vector.chains import Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.tile.ir import Block, Function, Op, Value, uses


@dataclass(frozen=True)
class _Around:
    """A loop, and the one around it."""

    loop: Op
    outer: _Around | None


def replace_zeros(function: Function) -> None:
    """Runs the pass, in place."""
    makers = {result: op for op in function.body.walk() for result in op.results}
    used = uses(function.body)

    def visit(block: Block, around: _Around | None) -> None:
        for op in block.ops:
            if op.body is not None:
                visit(op.body, _Around(op, around))
            elif op.name == "dot":
                _dot(op, around, makers, used)

    visit(function.body, None)


def _dot(op: Op, around: _Around | None, makers: dict[Value, Op], used: dict[Value, list[Op]]) -> None:
    value, loops = op.operands[2], 0
    while len(used[value]) == 1 and around is not None and around.loop.body is not None:
        parameters = around.loop.body.parameters
        if value not in parameters or not around.loop.attributes["count"]:
            break
        value, around, loops = around.loop.operands[parameters.index(value) - 1], around.outer, loops + 1
    maker = makers.get(value)
    if len(used[value]) > 1 or maker is None or not _is_zeros(maker):
        return
    op.attributes["fresh"] = loops
    attributes = maker.attributes
    maker.name, maker.operands = "full", []
    maker.attributes = {"value": 0, "dtype": attributes["dtype"], "shape": attributes["shape"]}


def _is_zeros(op: Op) -> bool:
    if op.name != "chain" or op.operands or op.attributes["splats"] != (0,):
        return False
    stages = op.attributes["stages"]
    return (stages.binary, stages.binary_operand) == (BinaryOp.SECOND, Operand.SPLAT0)
