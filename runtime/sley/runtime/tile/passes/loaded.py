"""Which tiles of bf16 may have elements as they were in memory: subnormals, and NaNs of any payload.

The vector unit makes zeros of subnormals, and one NaN of all, when it converts bf16 to fp32 to move it; so it must move
it in another way if these are to stay. What it has computed has none.
"""

from __future__ import annotations

from sley.abi.types import ElementType
from sley.runtime.tile.ir import Function, Value
from sley.runtime.tile.operations import LOADS
from sley.runtime.tile.types import TileType

KEPT = ("transpose", "copy", "part")
"""Operations whose results have elements of their first operand."""


def as_loaded(value: Value, function: Function) -> bool:
    """Whether a tile is of bf16, and loaded, or carried by a loop to which it was loaded."""
    if not isinstance(value.type, TileType) or value.type.dtype is not ElementType.BF16:
        return False
    makers = {result: op for op in function.body.walk() for result in op.results}
    carried = dict[Value, tuple[Value, Value]]()
    for op in function.body.walk():
        if op.body is not None:
            ends = op.body.ops[-1].operands
            for inside, behind, pair in zip(
                op.body.parameters[1:], op.results, zip(op.operands, ends, strict=True), strict=True
            ):
                carried[inside] = carried[behind] = pair
    left, seen = [value], set[Value]()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        maker = makers.get(one)
        if one in carried:
            left += carried[one]
        elif maker is not None and maker.name in LOADS:
            return True
        elif maker is not None and maker.name in KEPT:
            left.append(maker.operands[0])
    return False
