"""Channels of a DRAM with banks and refresh: when a beat is moved; ``channels.h`` is the same in C.

The rule (docs/theory/engines.md explains it). Time is counted in parts of a cycle: ``bandwidth`` of them are a cycle,
so a beat of ``bus_bytes`` takes ``bus_bytes`` parts.

1. Bytes of an ``INTERLEAVE`` are in one channel, the next ones in the next channel. A channel moves the beats of reads
   and writes in the order in which the bursts were accepted. Those of a burst that are in one interleave are a *piece*.
2. A piece begins when the piece before it in its channel has ended, and not before the cycle of its burst's address.
3. With banks: a channel's memory lies in rows of ``ROW_BYTES``, one after the other in its banks. A bank has one row
   open. A piece in another one opens it: that begins when the bank has moved its last beat, and not before the cycle of
   the burst's address, and takes ``row_miss`` cycles, before which the piece does not begin.
4. With refresh: in each ``refresh`` cycles, but the first, a channel rests for ``refresh_cycles``, and all rows are
   closed. A piece that would begin in that time begins behind it; one that has begun goes on.
"""

from dataclasses import dataclass, field
from typing import Protocol

INTERLEAVE = 256
ROW_BYTES = 2048
MAX_CHANNELS = MAX_BANKS = 16


class ChannelTiming(Protocol):
    """What of a DRAM's timing the rule needs."""

    @property
    def bandwidth(self) -> int: ...

    @property
    def channels(self) -> int: ...

    @property
    def banks(self) -> int: ...

    @property
    def row_miss(self) -> int: ...

    @property
    def refresh(self) -> int: ...

    @property
    def refresh_cycles(self) -> int: ...


@dataclass
class _Bank:
    row: int = -1
    end: int = 0


@dataclass
class _Channel:
    end: int = 0
    period: int = 0
    banks: list[_Bank] = field(default_factory=lambda: [_Bank() for _ in range(MAX_BANKS)])


class Channels:
    """The state of all channels. Times are in parts of a cycle."""

    def __init__(self, timing: ChannelTiming, bus_bytes: int) -> None:
        self._timing, self._bus_bytes = timing, bus_bytes
        self._parts = timing.bandwidth or bus_bytes
        self._channels = [_Channel() for _ in range(timing.channels)]

    def schedule(self, address: int, beats: int, now: int) -> list[int]:
        """A burst is accepted in cycle ``now``: when the first beat of each of its pieces has been moved."""
        end, ends = address + beats * self._bus_bytes, []
        while address < end:
            bytes = min(end, (address // INTERLEAVE + 1) * INTERLEAVE) - address
            ends.append(self._piece(address, bytes, now * self._parts) + self._bus_bytes)
            address += bytes
        return ends

    def moved(self, ends: list[int], start: int, address: int) -> int:
        """The first cycle after the beat at ``address`` of a burst from ``start`` on has been moved."""
        piece = address // INTERLEAVE - start // INTERLEAVE
        first = start if piece == 0 else address & -INTERLEAVE
        return -(-(ends[piece] + address - first) // self._parts)

    def _piece(self, address: int, bytes: int, now: int) -> int:
        timing, parts = self._timing, self._parts
        block = address // INTERLEAVE
        channel = self._channels[block % timing.channels]
        begin = max(channel.end, now)
        if timing.refresh:
            period = begin // (timing.refresh * parts)
            if period:
                rested = (period * timing.refresh + timing.refresh_cycles) * parts
                begin = max(begin, rested)
                if period != channel.period:
                    channel.period = period
                    for bank in channel.banks:
                        bank.row, bank.end = -1, max(bank.end, rested)
        if timing.banks:
            place = block // timing.channels * INTERLEAVE // ROW_BYTES
            bank, row = channel.banks[place % timing.banks], place // timing.banks
            if bank.row != row:
                bank.row = row
                begin = max(begin, max(bank.end, now) + timing.row_miss * parts)
            bank.end = begin + bytes
        channel.end = begin + bytes
        return begin
