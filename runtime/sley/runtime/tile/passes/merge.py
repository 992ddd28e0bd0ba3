"""Chains that are one behind the other become one, if its operands can be found.

A chain has two late operands and two ports beside A, of different memories. Where chains ended because a port was
taken, operands are found anew: A may be the column that is subtracted from and B the tile, so that the accumulators
have a port left; what is one row or one column is in a row register, which holds for an instruction: of N columns if
rows are, of one row if columns are. That empties the lanes before each instruction, and is done if the tile that is not
written and read has more rows than that costs. Each operation rounds as it would, so no bit changes.

Before: a ``chain`` of fp32 that nobody uses but another ``chain``, as its first operand. After: one ``chain``, with
``registers`` if some of its operands are there, which are its last ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Operand
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type, uses
from sley.runtime.tile.passes.assignment import Assigned, Step, assign, steps_of
from sley.runtime.tile.types import TileType

REGISTERS_COST = 52
"""Cycles of an instruction with row registers, beside its rows: until the lanes are empty, and for VROW."""
EMPTIED = 40
"""Cycles of one more chain, beside its rows."""
LEAST = 8
"""Rows of a tile from which on it may be taken N columns at a time where it was not."""
FLOATS = (ElementType.FP32, ElementType.BF16)


def merge_chains(function: Function, lanes: int) -> None:
    """Runs the pass, in place. ``lanes``: N of the chip."""
    users = uses(function.body)
    for block in function.body.blocks():
        made = {op.result: op for op in block.ops if op.name == "chain"}
        for op in reversed(list(block.ops)):
            if op.name == "chain" and op in block.ops and _of_floats(op):
                _merge(block, op, _before(op, made, users), lanes)


def _before(op: Op, made: dict[Value, Op], users: dict[Value, list[Op]]) -> list[Op]:
    """The chain whose result is the first operand of this one and nothing else, and those before it, the last first."""
    found: list[Op] = []
    while op.operands and (maker := made.get(op.operands[0])) is not None:
        alone = len(users[maker.result]) == 1 and maker.attributes["dtype"] is ElementType.FP32
        if not alone or maker.attributes["shape"] != op.attributes["shape"] or not _of_floats(maker):
            break
        found.append(maker)
        op = maker
    return found


def _of_floats(op: Op) -> bool:
    tiles = [value for value in (*op.operands, op.result) if isinstance(value.type, TileType)]
    return all(tile_type(value).dtype in FLOATS for value in tiles)


def _merge(block: Block, op: Op, before: Sequence[Op], lanes: int) -> None:
    """With as many of those before it as can be."""
    steps = steps_of(op)
    best: tuple[int, Assigned] | None = None
    for number, maker in enumerate(before):
        more = steps_of(maker)
        if steps is None or more is None or any(step.source is maker.result for step in steps):
            break  # a later stage takes the operand, too
        steps = more + steps
        by_columns = all(map(_by_columns, (op, *before[: number + 1])))
        found = _assigned(maker.operands[0], steps, op.attributes["shape"], number + 1, by_columns, lanes)
        if found is not None:
            best = number + 1, found
    if best is None:
        return
    number, found = best
    wide = {value: _widened(block, op, value) for value in found.widened}
    op.operands = [wide.get(value, value) for value in found.operands]
    op.attributes = {**op.attributes, "stages": found.stages, "splats": found.splats}
    if found.registers:
        op.attributes["registers"] = tuple(register - Operand.ROW0 for register in found.registers)
    for maker in before[:number]:
        block.ops.remove(maker)


def _by_columns(op: Op) -> bool:
    """Whether it has an operand that is read again and again, so that an instruction takes N columns."""
    tiles = [value for value in op.operands if isinstance(value.type, TileType)]
    return any(tile_shape(value) != op.attributes["shape"] for value in tiles)


def _assigned(
    a: Value, steps: Sequence[Step], shape: tuple[int, int], saved: int, by_columns: bool, lanes: int
) -> Assigned | None:
    """If it takes less time than what is saved: so many tiles that are written and read. ``by_columns``: all of these
    chains take N columns at a time."""
    rows, chunks = shape[0], -(-shape[1] // lanes)
    found = assign(a, steps, shape, by_rows=rows < chunks)
    if found is None or (rows < LEAST and not by_columns):
        return None
    cost = min(rows, chunks) * REGISTERS_COST * bool(found.registers)
    cost += sum(-(-tile_type(value).shape[1] // lanes) + EMPTIED for value in found.widened)
    return found if saved * rows * chunks > cost else None


def _widened(block: Block, op: Op, value: Value) -> Value:
    """The same as fp32, in front of the operation."""
    shape, dtype = tile_type(value).shape, ElementType.FP32
    attributes = {"stages": Chain(), "splats": (), "slots": (), "iota": ()}
    types = {"computed": dtype, "dtype": dtype, "shape": shape}
    made = Op("chain", [value], {**attributes, **types}, [Value(TileType(dtype, shape))], line=op.line)
    block.ops.insert(block.ops.index(op), made)
    return made.result
