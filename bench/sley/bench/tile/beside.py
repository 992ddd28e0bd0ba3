"""A tile kernel beside a program that is planned by hand, on one device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sley.runtime import Device

Call = Callable[[], object]


@dataclass(frozen=True)
class Beside:
    """Cycles from doorbell to fence, of a second run each."""

    compiled: int
    by_hand: int

    @property
    def share(self) -> float:
        """By hand / compiled."""
        return self.by_hand / self.compiled


def second_runs(device: Device, compiled: Call, by_hand: Call) -> tuple[int, int]:
    """Their cycles; the first run of each has brought its program into memory."""
    cycles = []
    for call in (compiled, by_hand):
        call()
        with device.stream.timed() as timing:
            call()
        cycles.append(timing.cycles)
    return cycles[0], cycles[1]
