"""Cycles of an SDRAM part at a clock."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from sley.fpga.memory.sdram.part import SdramPart

LOOKUP_CYCLES = 3
"""A row is known to be open this long after it was opened, so it stays open at least as long."""
REFRESH_CYCLES = 4
"""Of the refresher's state machine, from the request of a refresh to the refresh, without what the part needs."""


def cycles(ns: float, clock_hz: int) -> int:
    """The least number of cycles that take ``ns``; at least 1."""
    return max(1, ceil(Fraction(ns) * clock_hz / 10**9))


@dataclass(frozen=True)
class SdramTiming:
    """Cycles from one command to the next, for column bursts of ``burst`` words.

    ``activate_to_precharge`` and ``precharge`` together are not less than tRC. ``write_to_precharge``,
    ``read_to_precharge`` and ``read_to_write`` count from the column command. ``refresh_interval`` is the time from one
    refresh to the next, which comes at most ``refresh_delay`` late.
    """

    burst: int
    cas: int
    activate_to_precharge: int
    activate_to_column: int
    precharge: int
    bank_to_bank: int
    write_to_precharge: int
    read_to_precharge: int
    read_to_write: int
    refresh: int
    mode_set: int
    power_up: int
    refresh_delay: int
    refresh_interval: int


def sdram_timing(part: SdramPart, clock_hz: int, burst: int) -> SdramTiming:
    """What ``part`` needs at ``clock_hz``. Raises ``ValueError`` if it is too fast, or too slow for refreshes."""
    period = Fraction(10**9, clock_hz)
    fitting = [cas for cas, shortest in sorted(part.clock_period.items()) if period >= Fraction(shortest)]
    if not fitting:
        highest = floor(10**9 / Fraction(min(part.clock_period.values())))
        raise ValueError(
            f"clock_hz is {clock_hz}; {part.name} takes at most {highest}: lower the clock or take a faster part"
        )
    cas = fitting[0]
    opened = max(LOOKUP_CYCLES, cycles(part.activate_to_precharge, clock_hz))
    written = burst - 1 + max(2, cycles(part.write_recovery, clock_hz))
    precharge, refresh = cycles(part.precharge, clock_hz), cycles(part.refresh, clock_hz)
    delay = max(opened, written, burst) + precharge + REFRESH_CYCLES
    interval = (floor(Fraction(part.refresh_period) * clock_hz / 10**9) - delay) // part.refreshes
    least = 2 * (delay + refresh)
    if interval < least:
        lowest = ceil(Fraction(10**9) * (least * part.refreshes + delay) / Fraction(part.refresh_period))
        raise ValueError(
            f"clock_hz is {clock_hz}; with less than {lowest} refreshes of {part.name} take half of the time or more: "
            f"raise the clock"
        )
    return SdramTiming(
        burst=burst,
        cas=cas,
        activate_to_precharge=opened,
        activate_to_column=cycles(part.activate_to_column, clock_hz),
        precharge=precharge,
        bank_to_bank=cycles(part.bank_to_bank, clock_hz),
        write_to_precharge=written,
        read_to_precharge=burst,
        read_to_write=cas + burst + 1,
        refresh=refresh,
        mode_set=max(2, cycles(part.mode_set, clock_hz)),
        power_up=cycles(part.power_up, clock_hz),
        refresh_delay=delay,
        refresh_interval=interval,
    )
