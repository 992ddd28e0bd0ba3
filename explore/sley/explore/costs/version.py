"""Which Sley it was: a digest of everything that decides cycles."""

from functools import cache
from pathlib import Path

import sley.abi.config
import sley.driver.device
import sley.explore.costs.workload
import sley.runtime.cache
import sley.sim.errors
from sley.sim.build.cache import digest

PORTIONS = (sley.abi.config, sley.driver.device, sley.runtime.cache, sley.sim.errors, sley.explore.costs.workload)
"""A file at the top of each folder that decides."""
SUFFIXES = (".py", ".h", ".c")


@cache
def version() -> str:
    """With another one, costs are computed anew."""
    folders = (Path(str(module.__file__)).parent for module in PORTIONS)
    return digest(*(p.read_bytes() for f in folders for p in sorted(f.rglob("*")) if p.suffix in SUFFIXES))
