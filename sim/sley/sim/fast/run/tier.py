"""Tiers: how well the C of a design is compiled.

``first`` takes the least time to compile, ``best`` makes the fastest library. ``auto`` takes the best library if the
cache has it, else the first one; the best is then compiled in the background and taken from the next opening on.
Clang, which compiles both in almost the same time, makes the best at once. What a library computes does not depend on
its tier.
"""

import os

from sley.abi.transport import EngineError

AUTO, FIRST, BEST = "auto", "first", "best"
TIERS = (AUTO, FIRST, BEST)
VARIABLE = "SLEY_TIER"
"""The environment variable with the tier of what is opened with ``auto``."""

_COMMON = ("-fno-tree-slp-vectorize", "-fno-strict-aliasing", "-fvisibility=hidden", "-w")
OPTIMISE = {FIRST: ("-Og", *_COMMON), BEST: ("-O2", *_COMMON)}
"""Flags of the C compiler. Loops over elements are written as vectors: the compiler need not look for any."""


def chosen(tier: str) -> str:
    """The tier to build. Raises ``EngineError`` for one that does not exist."""
    named = [("tier", tier), (VARIABLE, os.environ.get(VARIABLE, AUTO))]
    for origin, name in named:
        if name not in TIERS:
            raise EngineError(f"{origin}={name}: the tiers are {', '.join(TIERS)}")
    return next((name for _, name in named if name != AUTO), AUTO)
