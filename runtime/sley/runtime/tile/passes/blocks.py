"""Blocks of the grid that a core takes one after the other become loops, so that the next one is loaded while this
one is computed.

Before: a body for one block. After: as many blocks as the chip has cores, each with loops over its part: those of a
gang, or else parts of one axis of the grid, if they share it evenly. A grid that they do not share evenly
keeps its longest axis, and its blocks the loops over the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from sley.runtime.tile.choices import Sides
from sley.runtime.tile.ir import Block, Function, Op, Value, replaced
from sley.runtime.tile.types import INDEX

_NAMES = ("block_x", "block_y", "block_z")


@dataclass(frozen=True)
class Cut:
    """How blocks are dealt. ``grid``: of the launch. ``along``: for each axis of the grid as it was, those of the
    launch that its blocks are dealt along, the last one fastest."""

    grid: Sides
    along: tuple[Sequence[int], Sequence[int], Sequence[int]]

    def parts(self, axis: int) -> int:
        """Of an axis of the grid."""
        return prod(self.grid[place] for place in self.along[axis])


ON_ONE = Cut((1, 1, 1), ((), (), ()))
"""All blocks on one core: where memory keeps up with no more, others would only take turns."""


def along_longest(grid: Sides, cores: int) -> Cut:
    """Parts of the longest axis, one for each core, or for each block; all blocks are there if it has fewer than there
    are cores."""
    longest = max(range(3), key=lambda axis: grid[axis])
    size = grid[longest]
    if size < cores:
        return Cut(grid, ((0,), (1,), (2,)))
    if cores == 1:
        return ON_ONE
    parts = [1, 1, 1]
    parts[longest] = size if size % cores else cores
    x, y, z = ((axis,) if axis == longest else () for axis in range(3))
    return Cut((parts[0], parts[1], parts[2]), (x, y, z))


def loop_over_blocks(function: Function, cut: Cut, order: Sequence[int] = (2, 1, 0)) -> None:
    """Runs the pass, in place. ``order``: of the axes of the grid, the outermost loop first."""
    inner, block = _without_ids(function), function.body
    for axis in reversed(order):
        number, head, block = _looped(block, axis, function.grid[axis] // cut.parts(axis), cut)
        replaced(block, dict.fromkeys(inner[axis], number))
        if head:
            block.ops = [*head, *block.ops]
    function.body, function.grid = block, cut.grid


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


def _looped(block: Block, axis: int, count: int, cut: Cut) -> tuple[Value, list[Op], Block]:
    """The number of the block along an axis, operations that begin with it, and the block in a loop over ``count``."""
    variable, made = Value(INDEX, _NAMES[axis]), Value(INDEX)
    body = block
    number, head = variable, list[Op]()
    if cut.parts(axis) > 1:
        head, part = _part(axis, cut)
        number = part
        if count > 1:
            times, first = Value(INDEX), Value(INDEX)
            head += [Op("const", [], {"value": count}, [times]), Op("imul", [part, times], {}, [first])]
            body.ops = [Op("iadd", [first, variable], {}, [made]), *body.ops]
            number = made
    if count == 1:
        if cut.parts(axis) == 1:
            number = Value(INDEX)
            head = [Op("const", [], {"value": 0}, [number])]
        return number, head, body
    body.ops = [*body.ops, Op("yield", [])]
    loop = Op("for", [], {"lower": 0, "step": 1, "count": count}, body=Block([variable], body.ops))
    return number, head, Block([], [loop])


def _part(axis: int, cut: Cut) -> tuple[list[Op], Value]:
    """Which part of an axis a core takes, and operations that say it."""
    ops: list[Op] = []
    part: Value | None = None
    for place in cut.along[axis]:
        here = Value(INDEX)
        ops.append(Op("block", [], {"axis": place}, [here]))
        if part is not None:
            size, before, both = Value(INDEX), Value(INDEX), Value(INDEX)
            ops += [
                Op("const", [], {"value": cut.grid[place]}, [size]),
                Op("imul", [part, size], {}, [before]),
                Op("iadd", [before, here], {}, [both]),
            ]
            here = both
        part = here
    assert part is not None
    return ops, part
