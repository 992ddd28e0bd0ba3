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
from sley.runtime.tile.ir import Function
from sley.runtime.tile.passes.blocks import loop_over_blocks
from sley.runtime.tile.passes.carry import keep_in_place
from sley.runtime.tile.passes.chains import form_chains
from sley.runtime.tile.passes.masks import form_masks
from sley.runtime.tile.passes.placement import place
from sley.runtime.tile.passes.products import check_products
from sley.runtime.tile.passes.ranges import check_places, index_ranges
from sley.runtime.tile.passes.runs import make_runs
from sley.runtime.tile.passes.simplify import simplify
from sley.runtime.tile.passes.spread import spread_columns
from sley.runtime.tile.passes.transposes import move_transposes
from sley.runtime.tile.text import printed
from sley.runtime.tile.verify import verify

PASSES: dict[str, Callable[[Function], None]] = {
    "simplify": simplify,
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
    loop_over_blocks(function, config.cores)
    verify(function)
    ranges = index_ranges(function)
    check_places(function, ranges)
    check_products(function, config)
    placement = place(function, config)
    room = Room(function, config, placement, ranges)
    program = Emitter(function, room).program()
    if room.chains:  # again, with all of them in front
        program = Emitter(function, Room(function, config, placement, ranges, tuple(room.chains))).program()
    return Compiled(program, function.grid)
