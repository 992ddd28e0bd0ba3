"""What a reduction takes is computed for it alone, where that is no more work.

Before: a ``reduce`` of what other operations use, too, or of what is made of that. After: it has a copy of the few
element-wise operations that make this, so that both copies join the chain of who uses them, and nobody writes it. A
softmax computes its powers twice: on the way to their sum, and on the way to the result; a log-softmax the distances
from the largest, a layer norm those from the mean. It is done if these operations take one tile, besides constants and
bf16, or a tile of bf16 and one column: so the one instruction that they are can read the sums so far, too.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Function, Op, Value, tile_shape, tile_type, uses
from sley.runtime.tile.passes.chains import CONSTANT

MOST = 4
"""Operations of a copy: more do not join one chain."""
DISTANCES = ("add", "sub", "rsub", "max", "min")
"""Operations that a tile and a column can begin a chain with, whichever of them is its first operand."""
COPIED = ("binary", "unary", "cast")


def recompute(function: Function) -> None:
    """Runs the pass, in place."""
    users = uses(function.body)
    makers = {result: op for op in function.body.walk() for result in op.results}
    for block in function.body.blocks():
        for op in list(block.ops):
            if op.name != "reduce" or op.attributes["axis"] == 0:
                continue
            line = _line(op.operands[0], makers)
            others = [user for made in line for user in users[made.result] if user is not op and user not in line]
            if not others or any(user.name not in COPIED for user in others):
                continue
            copies: dict[Value, Value] = {}
            place = block.ops.index(op)
            for old in reversed(line):
                operands = [copies.get(operand, operand) for operand in old.operands]
                copies[old.result] = Value(old.result.type)
                copy = Op(old.name, operands, dict(old.attributes), [copies[old.result]], line=old.line)
                block.ops.insert(place, copy)
                place += 1
            op.operands = [copies[op.operands[0]]]


def _line(value: Value, makers: dict[Value, Op]) -> list[Op]:
    """The operations that make it, last first, of which each takes the one before; none if they are too many, or take
    more than one tile, but for a column beside bf16."""
    found: list[Op] = []
    column = False
    while True:
        op = makers.get(value)
        if op is None or op.name not in COPIED or (op.name == "cast" and _narrow(op.operands[0])):
            if column:
                return found if op is not None and op.name == "cast" else []
            return found if any(op.name == "unary" for op in found) else []
        found.append(op)
        others = list(dict.fromkeys(operand for operand in op.operands if not _free(operand, makers)))
        if column:
            return []
        if len(others) == 2 and op.attributes.get("kind") in DISTANCES:
            others = [operand for operand in others if not _column(operand, op)]
            column = True
        if len(found) > MOST or len(others) != 1:
            return []
        (value,) = others


def _column(operand: Value, op: Op) -> bool:
    return tile_shape(operand)[1] == 1 < tile_shape(op.result)[1]


def _free(operand: Value, makers: dict[Value, Op]) -> bool:
    """Whether it is a constant, or a row or a column of bf16."""
    maker = makers.get(operand)
    if maker is None:
        return False
    one_line = 1 in tile_type(operand).shape
    return maker.name in CONSTANT or (one_line and maker.name == "cast" and _narrow(maker.operands[0]))


def _narrow(value: Value) -> bool:
    return tile_type(value).dtype is ElementType.BF16
