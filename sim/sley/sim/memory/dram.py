"""DRAM behind an AXI4 manager, cycle by cycle, by the published timing rule; ``dram.h`` is the same in C.

The rule (docs/theory/engines.md explains it). Outputs in a cycle depend only on what happened in the cycles before.

1. ``arready`` is high while fewer than ``depth`` bursts are queued; a burst leaves the queue with its last beat. A
   burst accepted in cycle ``t`` delivers its first beat at ``t + latency`` at the earliest, and ``1 + gap`` cycles
   after the last beat of the burst before at the earliest; ``gap`` is 0 if its address continues that burst, else
   ``burst_gap``. A beat follows in the cycle after the one before was accepted. Bursts are served in order. A beat
   holds what memory contains at the beginning of the first cycle in which it is offered.
2. ``awready`` is high while fewer than ``depth`` bursts are queued; a burst leaves the queue with its last beat. A
   burst's beats are accepted from the cycle after its address on, and from ``1 + gap`` cycles after the last beat of
   the burst before on, one a cycle. They are in memory at the end of the cycle.
3. The response follows ``latency`` cycles after the last beat at the earliest, in order, one a cycle. Responses that
   wait hold up nothing.
4. A beat beyond the memory's size is answered with DECERR (a write: the burst's response); it reads as zeros and
   writes nothing.
5. With ``bandwidth``, ``channels``, ``banks`` or ``refresh``: a beat of a write is accepted, and one of a read offered
   ``latency`` - 1 cycles later, not before its channel has moved it: the rule in ``channels.py``.

Bursts are INCR, of the full bus width, and do not cross a 4096-byte boundary; anything else is a violation.
"""

from collections import deque
from dataclasses import dataclass

from sley.abi.config import BURST_BOUNDARY
from sley.sim.memory.channels import MAX_BANKS, MAX_CHANNELS, Channels

OKAY, DECERR = 0, 3
INCR = 1
MAX_CYCLES = 1 << 20
BOUNDS = {
    "latency": (1, MAX_CYCLES),
    "burst_gap": (0, MAX_CYCLES),
    "depth": (1, 1024),
    "bandwidth": (0, 1024),
    "channels": (1, MAX_CHANNELS),
    "banks": (0, MAX_BANKS),
    "row_miss": (0, MAX_CYCLES),
    "refresh": (0, MAX_CYCLES),
    "refresh_cycles": (0, MAX_CYCLES),
}
"""Least and greatest value of each parameter of ``DramTiming``."""


@dataclass(frozen=True)
class DramTiming:
    """Parameters of the timing rule, in cycles, bytes and bursts; ``channels.h`` has them in this order."""

    latency: int = 32
    """Cycles from an address to its first data."""
    burst_gap: int = 1
    """Cycles that a burst to a new place costs."""
    depth: int = 64
    """Bursts that are queued."""
    bandwidth: int = 0
    """Bytes a cycle of each channel; 0: as many as the bus."""
    channels: int = 1
    """Channels, which work beside each other."""
    banks: int = 0
    """Banks of a channel, each with an open row; 0: all rows are open."""
    row_miss: int = 24
    """Cycles to open a row."""
    refresh: int = 0
    """Cycles from refresh to refresh; 0: none."""
    refresh_cycles: int = 128
    """Cycles that a refresh takes."""

    def __post_init__(self) -> None:
        for name, (low, high) in BOUNDS.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"DRAM {name} is {value}; it must be in {low}..{high}")
        if self.refresh and self.refresh <= self.refresh_cycles:
            raise ValueError(
                f"DRAM refresh is {self.refresh}: it must be more than refresh_cycles, {self.refresh_cycles}, or there "
                "is no time for data"
            )

    @property
    def channelled(self) -> bool:
        """Whether the rule of channels applies."""
        return bool(self.bandwidth or self.channels > 1 or self.banks or self.refresh)


class ProtocolError(Exception):
    """The manager broke a rule of AXI4, or of the subset that the model serves."""


class _Burst:
    __slots__ = ("address", "beats", "earliest", "ends", "error", "gap", "id", "start")

    def __init__(self, address: int, beats: int, earliest: int, gap: int, id: int, ends: list[int]) -> None:
        self.address, self.beats, self.earliest, self.gap, self.id = address, beats, earliest, gap, id
        self.start, self.ends = address, ends
        self.error = False


OUTPUTS = ("awready", "wready", "bvalid", "bid", "bresp", "arready", "rvalid", "rid", "rresp", "rlast", "rdata")
"""What a memory drives, by the names of AXI."""

Address = tuple[int, int, int, int, int]
"""ID, address, len, size, burst."""

Beat = tuple[int, int, int]
"""Data, strobes, last."""


class Dram:
    """One memory of ``len(memory)`` bytes on a bus of ``bus_bytes``.

    The attributes named like AXI signals are the outputs in the current cycle; ``edge`` ends the cycle. What is not
    valid is given as None.
    """

    def __init__(self, memory: bytearray, bus_bytes: int, timing: DramTiming) -> None:
        self.memory, self.bus_bytes, self.timing = memory, bus_bytes, timing
        self.cycle = 0
        self.awready = self.arready = 1
        self.wready = self.bvalid = self.rvalid = 0
        self.bid = self.bresp = self.rid = self.rdata = self.rresp = self.rlast = 0
        self._size = bus_bytes.bit_length() - 1
        self._channels = Channels(timing, bus_bytes) if timing.channelled else None
        self._reads: deque[_Burst] = deque()
        self._writes: deque[_Burst] = deque()
        self._responses: deque[tuple[int, int, int]] = deque()
        self._read_end = self._write_end = -1  # address after the youngest burst, -1 before the first
        self._read_free = self._write_free = 0  # first cycle after the last beat of the burst served last

    @property
    def idle(self) -> bool:
        """Nothing is queued: a cycle without an address changes nothing."""
        return not (self._reads or self._writes or self._responses)

    def edge(
        self,
        aw: Address | None,
        w: Beat | None,
        bready: int,
        ar: Address | None,
        rready: int,
    ) -> None:
        """Ends the current cycle with these inputs; the outputs are then those of the next cycle."""
        now = self.cycle
        self.cycle = next_cycle = now + 1
        if aw is None and ar is None and self.idle:
            return
        timing, step = self.timing, self.bus_bytes

        if w is not None and self.wready:
            self._write_beat(self._writes[0], *w)
        if self.bvalid and bready:
            self._responses.popleft()
        if aw is not None and self.awready:
            self._write_end = self._push(self._writes, aw, self._write_end, next_cycle)
        if self.rvalid and rready:
            head = self._reads[0]
            head.address += step
            head.beats -= 1
            head.earliest = 0
            self.rvalid = 0
            if not head.beats:
                self._reads.popleft()
                self._read_free = next_cycle
        if ar is not None and self.arready:
            self._read_end = self._push(self._reads, ar, self._read_end, now + timing.latency)

        self.awready = int(len(self._writes) < timing.depth)
        self.arready = int(len(self._reads) < timing.depth)
        self.wready = 0
        if self._writes:
            head = self._writes[0]
            free = next_cycle >= head.earliest and next_cycle >= self._write_free + head.gap
            self.wready = int(free and self._moved(head, 0))
        self.bvalid = 0
        if self._responses:
            due, self.bid, self.bresp = self._responses[0]
            self.bvalid = int(next_cycle >= due)
        if self._reads and not self.rvalid:
            head = self._reads[0]
            free = next_cycle >= head.earliest and next_cycle >= self._read_free + head.gap
            if free and self._moved(head, timing.latency - 1):
                self._offer(head)

    def _moved(self, head: _Burst, after: int) -> bool:
        """Whether the channels have moved the next beat of a burst, which is then at hand after some cycles."""
        channels = self._channels
        return channels is None or self.cycle >= channels.moved(head.ends, head.start, head.address) + after

    def _push(self, queue: deque[_Burst], address: tuple[int, int, int, int, int], end: int, earliest: int) -> int:
        id, start, length, size, burst = address
        bytes = (length + 1) << self._size
        start &= -self.bus_bytes
        if size != self._size or burst != INCR:
            raise ProtocolError("a burst that is not INCR or not of the full bus width")
        if start // BURST_BOUNDARY != (start + bytes - 1) // BURST_BOUNDARY:
            raise ProtocolError(f"a burst across a {BURST_BOUNDARY}-byte boundary")
        gap = 0 if end in (-1, start) else self.timing.burst_gap
        ends = self._channels.schedule(start, length + 1, self.cycle - 1) if self._channels else []
        queue.append(_Burst(start, length + 1, earliest, gap, id, ends))
        return start + bytes

    def _write_beat(self, head: _Burst, data: int, strobes: int, last: int) -> None:
        step = self.bus_bytes
        if last != (head.beats == 1):
            raise ProtocolError("wlast is not on the last beat of the burst")
        if head.address + step > len(self.memory):
            head.error = True
        elif strobes == (1 << step) - 1:
            self.memory[head.address : head.address + step] = data.to_bytes(step, "little")
        else:
            for byte in range(step):
                if strobes >> byte & 1:
                    self.memory[head.address + byte] = data >> 8 * byte & 255
        head.address += step
        head.beats -= 1
        head.gap = 0
        if not head.beats:
            self._writes.popleft()
            self._write_free = self.cycle
            due = self.cycle - 1 + self.timing.latency
            self._responses.append((due, head.id, DECERR if head.error else OKAY))

    def _offer(self, head: _Burst) -> None:
        self.rvalid, self.rid, self.rlast = 1, head.id, int(head.beats == 1)
        end = head.address + self.bus_bytes
        if end > len(self.memory):
            self.rdata, self.rresp = 0, DECERR
        else:
            self.rdata, self.rresp = int.from_bytes(self.memory[head.address : end], "little"), OKAY
        head.gap = 0
