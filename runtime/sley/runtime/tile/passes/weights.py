"""The second operand of a product of int8 is interleaved when it is loaded, so it is no operand of anything else.

Before: a loaded tile of int8 with any users. After: those products have it loaded once more.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_type, uses
from sley.runtime.tile.operations import LOADS


def load_weights(function: Function) -> None:
    """Runs the pass, in place."""
    _block(function.body, uses(function.body))


def _block(block: Block, used: dict[Value, list[Op]]) -> None:
    for op in list(block.ops):
        if op.body is not None:
            _block(op.body, used)
        elif op.name in LOADS and tile_type(op.result).dtype is ElementType.INT8:
            users = used.get(op.result, [])
            products = [user for user in users if user.name == "dot" and user.operands[1] is op.result]
            others = [user for user in users if user not in products or user.operands[0] is op.result]
            if products and others:
                again = Op(op.name, list(op.operands), dict(op.attributes), [Value(op.result.type)], line=op.line)
                block.ops.insert(block.ops.index(op) + 1, again)
                for product in products:
                    product.operands[1] = again.result
