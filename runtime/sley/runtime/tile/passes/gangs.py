"""Cores that take blocks side by side are a gang, and load together what is the same for all of them.

Before: a grid of blocks. After: blocks dealt to a gang of all cores, across along one axis of the grid and down along
another one, or the same, of which each core has an equal part; each load that does not depend on where a core is
across, or down, says so, and memory is read once for these cores. Of all ways to deal them it is the one with the
fewest cycles of the memory bus; where none has fewer than cores on their own, there is no gang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from sley.abi.config import ChipConfig
from sley.abi.instructions import Share
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_type
from sley.runtime.tile.operations import LOADS
from sley.runtime.tile.passes.blocks import Cut
from sley.runtime.tile.passes.dependences import Changes, index_dependences


def gang(function: Function, config: ChipConfig) -> Cut | None:
    """How a gang takes the blocks, if there is one; marks the loads that are shared in it, in place."""
    if config.cores == 1:
        return None
    depend, loads = index_dependences(function), [*_loads(function.body)]
    alone = [trips * _cycles(op, config) for op, trips in loads]
    best, least = None, float(sum(alone))
    for across, down in product(range(3), repeat=2):
        cut = _cut(function, (across, down), config)
        if cut is None:
            continue
        shares = [_share(op, depend, (across, down)) for op, _ in loads]
        cycles = sum(each / sharers(share, config) for each, share in zip(alone, shares, strict=True))
        if cycles < least:
            best, least = (cut, shares), cycles
    if best is None:
        return None
    for (op, _), share in zip(loads, best[1], strict=True):
        if share:
            op.attributes["share"] = share.name.lower()
    return best[0]


def share_of(op: Op) -> Share:
    """Which cores a load is for."""
    return Share[op.attributes.get("share", "none").upper()]


def sharers(share: Share, config: ChipConfig) -> int:
    """How many cores a load is read once for."""
    across = config.cores_x if share & Share.ROW else 1
    return across * (config.cores_y if share & Share.COLUMN else 1)


def _cut(function: Function, axes: tuple[int, int], config: ChipConfig) -> Cut | None:
    """Blocks along the first axis go across, those along the second one down; None if cores had unequal parts."""
    sides = config.cores_x, config.cores_y
    if min(sides) == 1 and axes[0] != axes[1]:
        return None  # the same as another one
    along = [tuple(place for place in (1, 0) if axes[place] == axis) for axis in range(3)]
    cut = Cut((*sides, 1), (along[0], along[1], along[2]))
    return cut if all(function.grid[axis] % cut.parts(axis) == 0 for axis in range(3)) else None


def _share(op: Op, depend: Mapping[Value, Changes], axes: tuple[int, int]) -> Share:
    """Lists of runs are each core's own."""
    if op.name != "load":
        return Share.NONE
    own = Changes().union(*(depend[index] for index in op.operands[1:]))
    across, down = (axis not in own for axis in axes)
    return Share(Share.ROW * across | Share.COLUMN * down)


def _cycles(op: Op, config: ChipConfig) -> int:
    """Of the memory bus, for a tile whose rows are runs, each with a request."""
    tile = tile_type(op.result)
    return tile.shape[0] * (-(-tile.shape[1] * tile.dtype.bytes // config.bus_bytes) + 1)


def _loads(block: Block, trips: int = 1) -> Iterator[tuple[Op, int]]:
    """Loads, and how often each is done."""
    for op in block.ops:
        if op.name in LOADS:
            yield op, trips
        elif op.body is not None:
            yield from _loads(op.body, trips * op.attributes["count"])
