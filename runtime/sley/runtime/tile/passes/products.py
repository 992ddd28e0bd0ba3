"""What of ``dot`` the array cannot do, and how its second operand must lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.tile.ir import Function, Op, Value, tile_shape, tile_type, uses
from sley.runtime.tile.operations import LOADS, TileError


def ragged(function: Function, config: ChipConfig) -> frozenset[Value]:
    """First operands of bf16 that chains make, whose lanes behind K must be cleared: the array multiplies them by -0.
    Of int8 it multiplies them by 0, and of loaded tiles the fill value is there. Raises ``TileError`` for another one,
    and for types that the chip does not multiply."""
    makers = {result: op for op in function.body.walk() for result in op.results}
    found = set()
    for op in function.body.walk():
        if op.name != "dot":
            continue
        a = op.operands[0]
        dtype, (rows, depth) = tile_type(a).dtype, tile_shape(a)
        if not config.has(dtype):
            raise TileError(f"line {op.line}: the chip {config.name} does not multiply {dtype.info.name}")
        if dtype is ElementType.INT8 or depth % config.array == 0:
            continue
        maker = makers.get(_wholes(a, makers)[-1])
        if maker is not None and maker.name == "chain":
            found.update(_wholes(a, makers))
        elif maker is None or maker.name not in LOADS or maker.attributes["fill"] != 0:
            raise TileError(
                f"line {op.line}: dot with a first tile of {rows} x {depth} that is carried by a loop, or filled with "
                f"other than 0; its columns must be a multiple of {config.array} on the chip {config.name}"
            )
    return frozenset(found)


def interleaved(function: Function) -> frozenset[Value]:
    """Second operands of int8, whose rows Load interleaves. Raises ``TileError`` for one that is not loaded."""
    makers = {result: op for op in function.body.walk() for result in op.results}
    used, found = uses(function.body), set()
    for op in function.body.walk():
        if op.name != "dot" or tile_type(op.operands[1]).dtype is not ElementType.INT8:
            continue
        b = _wholes(op.operands[1], makers)[-1]
        alone = _weights_alone(b, used)
        if b not in makers or makers[b].name not in LOADS or makers[b].attributes["fill"] != 0 or not alone:
            raise TileError(
                f"line {op.line}: dot with a second tile of int8 that is computed, carried by a loop, or filled with "
                "other than 0; load it for this dot"
            )
        found |= set(_wholes(op.operands[1], makers))
    return frozenset(found)


def _wholes(value: Value, makers: Mapping[Value, Op]) -> list[Value]:
    """A tile, the one that it is a part of, and so on."""
    maker = makers.get(value)
    parts = maker is not None and maker.name == "part"
    return [value, *(_wholes(maker.operands[0], makers) if maker is not None and parts else ())]


def _weights_alone(value: Value, used: Mapping[Value, Sequence[Op]]) -> bool:
    """Whether a tile and its parts are second operands of products, and nothing else."""
    return all(
        _weights_alone(user.result, used)
        if user.name == "part"
        else user.name == "dot" and value is user.operands[1] and value is not user.operands[0]
        for user in used[value]
    )
