"""What of a kernel the chip cannot do: types, functions, lists, and operations that take chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.tile.ir import Function, Op, Value, tile_type, uses
from sley.runtime.tile.operations import LOADS, STORES, TileError
from sley.runtime.tile.passes.placement import row_elements, weight_pairs
from sley.runtime.tile.passes.products import interleaved
from sley.runtime.tile.passes.regions import array_of, longest_run, shape_of
from sley.runtime.tile.types import TileType

CHAINED = ("fold", "reduce", "join", "iota", "transpose", "spread")
LISTED = ("gather", "scatter")


def check_abilities(function: Function, config: ChipConfig) -> None:
    """Raises ``TileError`` with the line of the first operation that the chip does not have."""
    users, weights = uses(function.body), interleaved(function)
    for op in function.body.walk():
        problem = _of_part(op, users, config) if op.name == "part" else _problem(op, config)
        if problem is None and op.name in (*LOADS, *STORES):
            problem = _of_run(op, any(result in weights for result in op.results), config)
        if problem:
            raise TileError(f"line {op.line}: {problem}")


def _of_part(op: Op, users: Mapping[Value, Sequence[Op]], config: ChipConfig) -> str | None:
    type, axis = tile_type(op.result), op.attributes["axis"]
    multiple = row_elements(type.dtype, config) if axis == 1 else weight_pairs(type, config)
    if type.shape[axis] % multiple:
        what = "columns" if axis == 1 else "rows of int8"
        return f"a part of {type.shape[axis]} {what}; it has a multiple of {multiple} on the chip {config.name}"
    others = [user for user in users.get(op.result, []) if axis == 0 and user.name not in ("dot", "part")]
    if others or any(user.name == "dot" and op.result is user.operands[2] for user in users.get(op.result, [])):
        return (
            "a part of rows is an operand of dot alone, and no part is what its sums begin with; load it for the others"
        )
    return None


def _of_run(op: Op, weights: bool, config: ChipConfig) -> str | None:
    axis, most, array = op.attributes["axes"][1], longest_run(op, weights, config), array_of(op)
    columns = shape_of(op)[1] if axis is None else min(shape_of(op)[1], array.shape[axis])
    bytes = columns * array.dtype.bytes
    if most is not None and bytes > most:
        kind = "weights of int8" if weights else "a tile"
        return f"{op.name} of rows of {bytes:,} bytes; {kind} can have {most:,}: take fewer columns at a time"
    return None


def _problem(op: Op, config: ChipConfig) -> str | None:
    types = [value.type for value in (*op.operands, *op.results)]
    narrow = any(isinstance(type, TileType) and type.dtype is ElementType.BF16 for type in types)
    if narrow and not config.has(ElementType.BF16):
        return f"{op.name} of bf16, which the chip {config.name} has not: its operand_types are int8 alone"
    if op.name in LISTED and not config.gather:
        return f"{op.name} takes lists, and the chip {config.name} has none: its gather is off"
    if op.name in CHAINED and not config.vector_chains:
        return f"{op.name} takes chains, and the chip {config.name} has no chains: its vector_chains is 0"
    function = op.attributes["stages"].function if "stages" in op.attributes else None
    if function is not None and function not in config.vector_functions:
        known = ", ".join(known.name.lower() for known in config.vector_functions)
        name = function.name.lower()
        return f"the chip {config.name} has no {name}; its vector_functions are {known or 'none'}"
    return None
