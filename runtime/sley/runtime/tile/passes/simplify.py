"""Index arithmetic on known numbers is done here, and what nobody uses is left out."""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Attribute, Block, Function, Op, Value, uses
from sley.runtime.tile.operations import INDEX_OPS, STORES


def simplify(function: Function) -> None:
    """Runs the pass, in place."""
    known: dict[Value, int] = {}
    filled: dict[Value, dict[str, Attribute]] = {}
    for op in function.body.walk():
        if op.name in INDEX_OPS and all(operand in known for operand in op.operands):
            a, b = (known[operand] for operand in op.operands)
            op.name, op.operands, op.attributes = "const", [], {"value": INDEX_OPS[op.name](a, b)}
        if op.name == "splat" and op.operands[0] in known:
            value = known[op.operands[0]]
            op.name, op.operands, op.attributes = (
                "full",
                [],
                {"value": value, "dtype": ElementType.INT32, "shape": (1, 1)},
            )
        if op.name == "part" and op.operands[0] in filled:
            op.name, op.operands, op.attributes = (
                "full",
                [],
                {**filled[op.operands[0]], "shape": op.attributes["shape"]},
            )
        if op.name == "full":
            filled[op.result] = op.attributes
        if op.name == "const":
            known[op.result] = op.attributes["value"]
    drop_unused(function)


def drop_unused(function: Function) -> None:
    """Leaves out what nobody uses, in place."""
    while _drop(function.body, function):
        pass


def _drop(block: Block, function: Function) -> bool:
    """Removes operations without users; whether there were any."""
    used = uses(function.body)

    def needed(op: Op) -> bool:
        return op.name in (*STORES, "yield", "for") or any(result in used for result in op.results)

    before = len(block.ops)
    block.ops = [op for op in block.ops if needed(op)]
    inner = [_drop(op.body, function) for op in block.ops if op.body is not None]
    return len(block.ops) != before or any(inner)
