"""Cycles that a kernel takes at least, from its IR as it is traced: choices that others beat need no price.

The array takes its rows, and memory moves each tile, whatever passes make of a kernel that does nothing twice. Loads
of what is the same in all rounds of a loop count once, as they may leave it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from sley.abi.config import ChipConfig
from sley.runtime.tile.cost import FENCE, START, inside
from sley.runtime.tile.ir import Block, Function, Op, tile_shape, tile_type
from sley.runtime.tile.passes.dependences import index_dependences
from sley.runtime.tile.passes.regions import array_of, shape_of
from sley.runtime.tile.types import INDEX


def least(function: Function, config: ChipConfig) -> int:
    """Cycles from the doorbell to the fence."""
    turns = -(-prod(function.grid) // config.cores)
    depends = index_dependences(function)
    rows = 0
    moved, last = Counter[str](), Counter[str]()
    for op, loops in _walk(function.body, ()):
        if op.name == "dot" and config.has(tile_type(op.operands[0]).dtype):
            rows += turns * prod(loop.attributes["count"] for loop in loops) * _rows(op, config)
        elif op.name in ("load", "store"):
            indices = (value for value in op.operands[1:] if value.type == INDEX)
            around = frozenset[Op | int]().union(*(depends[value] for value in indices))
            last[op.name] = _beats(op, config)
            moved[op.name] += last[op.name] * prod(_count(each, function) for each in around)
    # The first product waits for its tiles, and the last result is stored behind the last product.
    return START + FENCE + max(rows + last["load"] + last["store"] if rows else 0, *moved.values(), 0)


def _count(each: Op | int, function: Function) -> int:
    """Rounds of a loop, or blocks along an axis of the grid."""
    return function.grid[each] if isinstance(each, int) else each.attributes["count"]


def _walk(block: Block, loops: tuple[Op, ...]) -> Iterator[tuple[Op, tuple[Op, ...]]]:
    for op in block.ops:
        yield op, loops
        if op.body is not None:
            yield from _walk(op.body, (*loops, op))


def _rows(op: Op, config: ChipConfig) -> int:
    """That the array takes for a product; it may be made transposed."""
    (rows, depth), (_, columns) = tile_shape(op.operands[0]), tile_shape(op.operands[1])
    folds = -(-depth // config.fold_depth(tile_type(op.operands[0]).dtype))
    return folds * min(-(-b // config.array) * a for a, b in ((rows, columns), (columns, rows)))


def _beats(op: Op, config: ChipConfig) -> int:
    """Of the bus, for what the array has of a tile, on average."""
    array, axes = array_of(op), op.attributes["axes"]
    sizes = [
        size if axis is None else inside(size, array.shape[axis]) for size, axis in zip(shape_of(op), axes, strict=True)
    ]
    return int(prod(sizes) * array.dtype.bytes / config.bus_bytes)
