"""Runs of bytes at every alignment, for what reads and what writes them."""

import random

from sley.abi.config import ChipConfig, preset
from sley.hw.testing.coverage import Coverage

NANO = preset("nano").replace(max_burst=4)
EDGE = preset("edge").replace(max_burst=4)
LANES = {
    f"{end} in lane": [(config.name, lane) for config in (NANO, EDGE) for lane in range(config.bus_bytes)]
    for end in ("begins", "ends")
}
"""Bins of ``count_lanes``."""


def random_runs(config: ChipConfig, seed: str) -> list[tuple[int, int]]:
    """Address and length of runs that begin in each lane, of one byte to several bursts, in a random order."""
    width, rng = config.bus_bytes, random.Random(seed)
    most = 3 * 4 * width + 1
    runs = [
        (rng.randrange(2048) // width * width + lane, rng.randint(1, most))
        for lane in range(width)
        for _ in range(32 // width)
    ]
    runs += [(64 + a, n) for a in (0, 1, width - 1) for n in (1, width - 1, width, width + 1, most)]
    rng.shuffle(runs)
    return runs


def count_lanes(coverage: Coverage, config: ChipConfig, address: int, length: int) -> None:
    """Hits the lanes in which a run begins and ends, if its chip is one of the two that are counted."""
    if config in (NANO, EDGE):
        coverage.hit("begins in lane", (config.name, address % config.bus_bytes))
        coverage.hit("ends in lane", (config.name, (address + length - 1) % config.bus_bytes))
