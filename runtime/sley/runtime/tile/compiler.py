"""From a tile kernel to a program: the passes in their order, each verified, and printed if asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.runtime.device.program import Program
from sley.runtime.tile.emit.program import Emitter
from sley.runtime.tile.emit.room import Room
from sley.runtime.tile.ir import Block, Function
from sley.runtime.tile.passes.blocks import loop_over_blocks
from sley.runtime.tile.passes.carry import keep_in_place
from sley.runtime.tile.passes.chains import form_chains
from sley.runtime.tile.passes.common import share_common
from sley.runtime.tile.passes.masks import form_masks
from sley.runtime.tile.passes.order import Order, OrderError, orders
from sley.runtime.tile.passes.placement import Placement, place
from sley.runtime.tile.passes.products import check_products
from sley.runtime.tile.passes.ranges import check_places, index_ranges
from sley.runtime.tile.passes.runs import make_runs
from sley.runtime.tile.passes.simplify import simplify
from sley.runtime.tile.passes.slots import MOST
from sley.runtime.tile.passes.spread import spread_columns
from sley.runtime.tile.passes.transposes import move_transposes
from sley.runtime.tile.passes.zeros import replace_zeros
from sley.runtime.tile.text import printed
from sley.runtime.tile.verify import verify

PASSES: dict[str, Callable[[Function], None]] = {
    "simplify": simplify,
    "common": share_common,
    "transposes": move_transposes,
    "runs": make_runs,
    "spread": spread_columns,
    "masks": form_masks,
    "chains": form_chains,
    "carry": keep_in_place,
}
DUMP = "SLEY_DUMP"
"""The environment variable with the names of passes to print behind, separated by commas, or ``all``."""


def lower(function: Function, watch: Callable[[str, Function], None] | None = None) -> None:
    """Runs all passes, in place. ``watch`` sees the function behind each of them, and first as it is, ``source``.

    Raises ``TileError``.
    """
    wanted = set(os.environ.get(DUMP, "").split(","))
    for name, run in {"source": verify, **PASSES}.items():
        run(function)
        verify(function)
        if wanted & {"all", name}:
            print(f"# behind {name}\n{printed(function)}", file=sys.stderr)
        if watch is not None:
            watch(name, function)


@dataclass(frozen=True)
class Compiled:
    """A program, and the grid of blocks to launch it with."""

    program: Program
    grid: tuple[int, int, int]


def compile_function(function: Function, config: ChipConfig) -> Compiled:
    """The program of a function for a chip. The function is changed. Raises ``TileError``, ``KernelError``."""
    lower(function)
    replace_zeros(function)
    loop_over_blocks(function, config.cores)
    verify(function)
    ranges = index_ranges(function)
    check_places(function, ranges)
    check_products(function, config)
    placement, ordered = _in_order(function, config)
    first = Room(function, config, placement, ranges)
    Emitter(function, first, ordered).program()
    again = Room(function, config, placement, ranges, first)  # what loops need is written in front of them
    program = Emitter(function, again, ordered).program()
    return Compiled(program, function.grid)


def _in_order(function: Function, config: ChipConfig) -> tuple[Placement, dict[Block, Order]]:
    """Places and orders, with as many slots as semaphores can count."""
    slots = MOST
    while True:
        placement = place(function, config, slots)
        try:
            return placement, orders(function, placement)
        except OrderError:
            if slots == 1:
                raise
        slots //= 2
