"""An AXI4 memory with random timing, for benches of AXI managers."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Cat
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.hw.memory.axi import BURST_INCR
from sley.hw.testing.memory import Burst
from sley.hw.testing.streams import StreamBench, StreamError, Traffic

OKAY, SLVERR = 0, 2


CHANNELS = {
    "ar": ("addr", "len", "size", "burst", "id"),
    "aw": ("addr", "len", "size", "burst", "id"),
    "w": ("data", "strb", "last"),
    "r": ("data", "resp", "last", "id"),
    "b": ("resp", "id"),
}


class Channel:
    """One AXI channel as a stream for ``StreamBench``."""

    def __init__(self, axi: Any, name: str) -> None:
        signals = {field: getattr(axi, name + field) for field in CHANNELS[name]}
        self.valid = getattr(axi, f"{name}valid")
        self.ready = getattr(axi, f"{name}ready")
        self.payload = data.View(data.StructLayout({f: s.shape() for f, s in signals.items()}), Cat(signals.values()))


class AxiMemory:
    """Memory of ``size`` bytes on the manager port ``axi`` of the block under test.

    Parameters: ``latency``: least and greatest number of cycles from an address (for writes: from the last beat) to
    the answer; ``gap``: probability per cycle, on each channel, of not being ready or not giving an answer.
    Bursts that touch ``faulty`` or lie outside are answered with SLVERR (reads: only those beats).
    Raises when the manager breaks a rule: withdrawn or changed payload, wrong ``last``, size, burst type or ID, over
    4 KiB or over a boundary of the longest burst.

    Members: ``data``; ``reads``, ``writes``: lists of ``Burst``; ``quiet``: nothing begun is unfinished;
    ``channel(name)``: the traffic of an outgoing channel.
    """

    def __init__(
        self,
        bench: StreamBench,
        config: ChipConfig,
        axi: Any,
        *,
        size: int = 4096,
        latency: tuple[int, int] = (1, 40),
        gap: float = 0.0,
        faulty: range = range(0),
    ) -> None:
        self._bench = bench
        self._config = config
        self._latency = latency
        self._faulty = faulty
        self._taken = {"ar": 0, "aw": 0, "w": 0}
        self._read_queue: deque[tuple[int, Burst]] = deque()
        self._write_queue: deque[tuple[Burst, list[Any]]] = deque()
        self._answers: deque[tuple[int, int]] = deque()
        self._early: deque[Any] = deque()  # write data that came before their address
        self.data = bytearray(size)
        self.reads: list[Burst] = []
        self.writes: list[Burst] = []
        self._channels = {
            name: bench.receive(Channel(axi, name), pause=gap, name=f"AXI {name}") for name in ("ar", "aw", "w")
        }
        bench.send(Channel(axi, "r"), self._read_answers(), idle=gap, name="AXI r", wait=False)
        bench.send(Channel(axi, "b"), self._write_answers(), idle=gap, name="AXI b", wait=False)

    @property
    def quiet(self) -> bool:
        return not (self._read_queue or self._write_queue or self._answers or self._early)

    def channel(self, name: str) -> Traffic:
        """What passed on "ar", "aw" or "w" so far."""
        return self._channels[name]

    def _due(self) -> int:
        return self._bench.cycle + self._bench.rng.randint(*self._latency) - 1

    def _new(self, channel: str) -> Iterator[Any]:
        items = self._channels[channel].items
        while self._taken[channel] < len(items):
            yield items[self._taken[channel]]
            self._taken[channel] += 1

    def _burst(self, item: Any) -> Burst:
        width, beats = self._config.bus_bytes, item.len + 1
        if (1 << item.size, item.burst, item.id) != (width, BURST_INCR, 0):
            raise StreamError(f"AXI burst of a kind this bus does not have: {item!r}")
        if item.addr % width or item.addr // width % self._config.max_burst + beats > self._config.max_burst:
            raise StreamError(f"AXI burst of {beats} beats at {item.addr:#x} crosses a boundary")
        return Burst(item.addr, beats)

    def _take(self) -> None:
        for item in self._new("ar"):
            self.reads.append(self._burst(item))
            self._read_queue.append((self._due(), self.reads[-1]))
        for item in self._new("aw"):
            self.writes.append(self._burst(item))
            self._write_queue.append((self.writes[-1], []))
        self._early.extend(self._new("w"))
        while self._early and self._write_queue:
            burst, beats = self._write_queue[0]
            beat = self._early.popleft()
            at = burst.addr + len(beats) * self._config.bus_bytes
            beats.append(beat)
            if bool(beat.last) != (len(beats) == burst.beats):
                raise StreamError(f"AXI wlast is {beat.last} on beat {len(beats)} of {burst}")
            for k in range(self._config.bus_bytes):
                if beat.strb >> k & 1 and at + k < len(self.data):
                    self.data[at + k] = beat.data >> 8 * k & 0xFF
            if beat.last:
                bad = any(self._bad(burst.addr + k * self._config.bus_bytes) for k in range(burst.beats))
                self._answers.append((self._due(), SLVERR if bad else OKAY))
                self._write_queue.popleft()

    def _bad(self, addr: int) -> bool:
        end = addr + self._config.bus_bytes
        return end > len(self.data) or (addr < self._faulty.stop and end > self._faulty.start)

    def _read_answers(self) -> Iterator[dict[str, int] | None]:
        while True:
            self._take()
            if not self._read_queue or self._read_queue[0][0] > self._bench.cycle:
                yield None
                continue
            _, burst = self._read_queue[0]
            width = self._config.bus_bytes
            for k in range(burst.beats):
                at = burst.addr + k * width
                value = int.from_bytes(self.data[at : at + width].ljust(width, b"\0"), "little")
                last = k == burst.beats - 1
                if last:
                    self._read_queue.popleft()
                yield {"id": 0, "data": value, "resp": SLVERR if self._bad(at) else OKAY, "last": last}
                self._take()

    def _write_answers(self) -> Iterator[dict[str, int] | None]:
        while True:
            self._take()
            if not self._answers or self._answers[0][0] > self._bench.cycle:
                yield None
                continue
            yield {"id": 0, "resp": self._answers.popleft()[1]}
