"""Runs of bytes at every alignment, for what reads and what writes them."""

import random
from collections.abc import Sequence

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


MEETINGS = ["one byte", "a beat", "unaligned", "over the end of a burst", "two bursts", "joined", "refused"]
"""Kinds of runs, of which each comes behind each; a run is refused as the memory ends at 4096."""


def meeting_runs(kinds: Sequence[str], rng: random.Random) -> list[dict[str, int]]:
    """A run of each of the kinds, with the marks for one that joins the one before; apart from all others."""
    width, burst = NANO.bus_bytes, 4 * NANO.bus_bytes
    runs: list[dict[str, int]] = []
    for at, kind in enumerate(kinds):
        start = at * 2 * burst % 2048 // burst * burst if kind != "refused" else 4096 + 2 * burst * at
        place, length = {
            "one byte": (rng.randrange(burst), 1),
            "a beat": (width * rng.randrange(4), width),
            "unaligned": (rng.randrange(1, width), width + 1),
            "over the end of a burst": (burst - rng.randint(1, width), rng.randint(width + 1, 2 * width)),
            "two bursts": (0, 2 * burst),
            "refused": (rng.randrange(width), rng.choice([1, width, burst])),
            "joined": (0, rng.choice([1, width - 1, width, burst])),
        }[kind]
        joins = bool(runs) and kind == "joined"
        if joins:
            runs[-1]["more"] = 1
            start, place = runs[-1]["addr"] + runs[-1]["bytes"], 0
        runs.append({"addr": start + place, "bytes": length, "more": 0, "joins": int(joins)})
    return runs
