"""A function of the tile language in its last form but for the chip: passes in their order, each verified, and printed
if asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from sley.runtime.tile.ir import Function
from sley.runtime.tile.passes.carry import keep_in_place
from sley.runtime.tile.passes.chains import form_chains
from sley.runtime.tile.passes.common import share_common
from sley.runtime.tile.passes.exact import keep_exact
from sley.runtime.tile.passes.folds import fold_chains
from sley.runtime.tile.passes.fuse import fuse
from sley.runtime.tile.passes.masks import form_masks
from sley.runtime.tile.passes.merge import merge_chains
from sley.runtime.tile.passes.narrow import narrow_results
from sley.runtime.tile.passes.privatise import privatise
from sley.runtime.tile.passes.recompute import recompute
from sley.runtime.tile.passes.runs import make_runs
from sley.runtime.tile.passes.simplify import simplify
from sley.runtime.tile.passes.split import split
from sley.runtime.tile.passes.spread import spread_columns
from sley.runtime.tile.passes.transposes import move_transposes
from sley.runtime.tile.passes.unroll import unroll
from sley.runtime.tile.passes.weights import load_weights
from sley.runtime.tile.schedule import AUTOMATIC, Schedule
from sley.runtime.tile.text import printed
from sley.runtime.tile.verify import verify

SCHEDULED: dict[str, Callable[..., None]] = {"split": split, "fuse": fuse, "privatise": privatise, "unroll": unroll}
"""Passes that a schedule asks for by their names. They take what it says."""
PASSES: dict[str, Callable[..., None]] = {
    "simplify": simplify,
    "common": share_common,
    "exact": keep_exact,
    "recompute": recompute,
    "transposes": move_transposes,
    "weights": load_weights,
    "runs": make_runs,
    "spread": spread_columns,
    "masks": form_masks,
    "chains": form_chains,
    "folds": fold_chains,
    "merge": merge_chains,
    "narrow": narrow_results,
    "carry": keep_in_place,
}
FOR_LANES = ("folds", "merge")
"""Passes that take N of the chip."""
DUMP = "SLEY_DUMP"
"""The environment variable with the names of passes to print behind, separated by commas, or ``all``."""


def lower(
    function: Function,
    lanes: int,
    schedule: Schedule = AUTOMATIC,
    watch: Callable[[str, Function], None] | None = None,
    verified: bool = True,
) -> None:
    """Runs all passes, in place, for a chip with so many lanes; of those that are ``SCHEDULED``, what the schedule asks
    for. ``watch`` sees the function behind each of them, and first as it is, ``source``. ``verified``: whether each
    pass is verified.

    Raises ``TileError``.
    """
    wanted = set(os.environ.get(DUMP, "").split(","))
    scheduled = {word: getattr(schedule, word) for word in SCHEDULED if getattr(schedule, word)}
    told = {**dict.fromkeys(FOR_LANES, lanes), **scheduled}
    passes = {**{word: SCHEDULED[word] for word in scheduled}, **PASSES}
    for name, run in {"source": verify, **passes}.items():
        run(function, *([told[name]] if name in told else []))
        if verified and run is not verify:
            verify(function)
        if wanted & {"all", name}:
            print(f"# behind {name}\n{printed(function)}", file=sys.stderr)
        if watch is not None:
            watch(name, function)
