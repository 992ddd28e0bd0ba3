"""Blocks of the grid that a core takes one after the other become loops, so that the next one is loaded while this
one is computed.

Before: a body for one block. After: as many blocks as the chip has cores, if they share an axis of the grid evenly,
each with loops over its part. A grid that they do not share evenly keeps its longest axis, and its blocks the loops
over the others. Iotas, which are the same in all blocks, are made in front of the loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from sley.runtime.tile.ir import Block, Function, Op, Value, replaced
from sley.runtime.tile.types import INDEX

_NAMES = ("block_x", "block_y", "block_z")


def loop_over_blocks(function: Function, cores: int, order: Sequence[int] = (2, 1, 0)) -> None:
    """Runs the pass, in place. ``order``: of the axes of the grid, the outermost loop first."""
    longest = max(range(3), key=lambda axis: function.grid[axis])
    if cores > 1 and function.grid[longest] < cores:
        return
    grid, inner, block = [1, 1, 1], _without_ids(function), function.body
    alike = [op for op in block.ops if op.name == "iota"]
    block.ops = [op for op in block.ops if op.name != "iota"]
    for axis in reversed(order):
        size = function.grid[axis]
        parts = 1
        if cores > 1 and axis == longest:
            parts = size if size % cores else cores
        grid[axis] = parts
        number, head, block = _looped(block, axis, size // parts, parts)
        replaced(block, dict.fromkeys(inner[axis], number))
        if head:
            block.ops = [*head, *block.ops]
    block.ops = [*alike, *block.ops]
    function.body, function.grid = block, (grid[0], grid[1], grid[2])


def _without_ids(function: Function) -> list[list[Value]]:
    """Takes the block's numbers out, by axis."""
    found: list[list[Value]] = [[], [], []]

    def take(block: Block) -> None:
        for op in block.ops:
            if op.name == "block":
                found[op.attributes["axis"]].append(op.result)
            elif op.body is not None:
                take(op.body)
        block.ops = [op for op in block.ops if op.name != "block"]

    take(function.body)
    return found


def _looped(block: Block, axis: int, count: int, parts: int) -> tuple[Value, list[Op], Block]:
    """The number of the block along an axis, operations that begin with it, and the block in a loop over ``count``."""
    variable, made = Value(INDEX, _NAMES[axis]), Value(INDEX)
    body = block
    number, head = variable, []
    if parts > 1:
        part, times, first = Value(INDEX), Value(INDEX), Value(INDEX)
        head = [
            Op("block", [], {"axis": axis}, [part]),
            Op("const", [], {"value": count}, [times]),
            Op("imul", [part, times], {}, [first]),
        ]
        number = first
        if count > 1:
            body.ops = [Op("iadd", [first, variable], {}, [made]), *body.ops]
            number = made
    if count == 1:
        if parts == 1:
            number = Value(INDEX)
            head = [Op("const", [], {"value": 0}, [number])]
        return number, head, body
    body.ops = [*body.ops, Op("yield", [])]
    loop = Op("for", [], {"lower": 0, "step": 1, "count": count}, body=Block([variable], body.ops))
    return number, head, Block([], [loop])
