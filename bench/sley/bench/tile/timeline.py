"""What ran when: the share of its time that each unit of a core works, from the doorbell to the end.

A device takes the same cycles for the same work, so it is run again and again, each time with its counters stopped a
little later; differences are what happened in between. Nothing is recorded, and the work takes no cycle more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from sley.abi.counters import Counter, CounterGroup, LoadCycle, MatrixCycle, StoreCycle, VectorCycle
from sley.runtime import Device

WORK: dict[CounterGroup, tuple[Counter, ...]] = {
    CounterGroup.LOAD: (LoadCycle.BEAT, LoadCycle.ROW),
    CounterGroup.MATRIX: (MatrixCycle.ROW_INT8, MatrixCycle.ROW_BF16),
    CounterGroup.VECTOR: (VectorCycle.ROW,),
    CounterGroup.STORE: (StoreCycle.BEAT,),
}
"""Cycles in which a unit works: data moves, or rows enter the array or the lanes."""
SHADES = " ░▒▓█"
COLUMNS = 64


@dataclass(frozen=True)
class Timeline:
    """``cycles``: of all. ``shares``: by units, of each part of the time the share in which it works."""

    cycles: int
    shares: dict[CounterGroup, list[float]]

    def text(self) -> str:
        """A line for each unit, a character for each part of the time."""
        parts = len(next(iter(self.shares.values())))
        each = self.cycles / parts
        lines = [f"{self.cycles:,} cycles, {each:,.0f} each; at work: {SHADES[1]} a little, {SHADES[-1]} all the time"]
        for group, shares in self.shares.items():
            drawn = "".join(SHADES[_shade(share)] for share in shares)
            whole = sum(shares) / parts
            lines.append(f"{group.name.lower():7}|{drawn}| {whole:4.0%}")
        return "\n".join(lines) + "\n"


def _shade(share: float) -> int:
    """Nothing at all is blank, and a full block is nearly all of the time."""
    return 0 if share < 0.01 else min(1 + int(share * 0.999 * (len(SHADES) - 1)), len(SHADES) - 1)


def timeline(device: Device, work: Callable[[], object], columns: int = COLUMNS, core: int = 0) -> Timeline:
    """Of one core, while ``work`` is done, which submits it to the device's stream. Raises ``NoCycleCounts``."""
    work()  # its programs are in memory from here on
    with device.stream.timed() as timing:
        work()
    samples = [_until(device, work, timing.cycles * part // columns, core) for part in range(columns + 1)]
    shares = {group: [_share(before, behind, group) for before, behind in pairwise(samples)] for group in WORK}
    return Timeline(timing.cycles, shares)


Sample = tuple[int, dict[CounterGroup, int]]
"""Cycles that were counted, and those of work of each unit."""


def _until(device: Device, work: Callable[[], object], cycles: int, core: int) -> Sample:
    device.stream.synchronize()
    before = device.driver.counters()
    with device.stream.batch():
        work()
    device.driver.transport.advance(cycles)
    counted = device.driver.counters() - before
    found = {group: sum(counted.cores[core][group][kind] for kind in kinds) for group, kinds in WORK.items()}
    device.stream.synchronize()
    return counted.cycles, found


def _share(before: Sample, behind: Sample, group: CounterGroup) -> float:
    cycles = behind[0] - before[0]
    return (behind[1][group] - before[1][group]) / cycles if cycles > 0 else 0.0
