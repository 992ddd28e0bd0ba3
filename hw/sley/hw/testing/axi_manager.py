"""An AXI4 manager with random bursts and random timing, for benches of AXI targets."""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.pages import PAGE_BYTES
from sley.hw.memory.axi import BURST_INCR, RESP_ERROR
from sley.hw.testing.axi import Channel
from sley.hw.testing.memory import Burst
from sley.hw.testing.streams import StreamBench, StreamError


@dataclass
class _Read:
    burst: Burst
    expected: bytes
    beats: list[Any] = field(default_factory=list)


class AxiManager:
    """Reads and writes in ``region`` through the target port ``axi``, and knows what each read must bring.

    Parameters: ``operations``: how many; ``gap``: probability per cycle, on each channel, of pausing; ``longest``:
    beats of the longest burst; none crosses 4 KiB. Many reads and writes are under way at once, but never both of the
    same place; writes have random strobes. The memory is taken to hold zeros at first.
    The run lasts until every operation was answered. Raises on wrong data, ``last``, response or ID.

    Members: ``data``: contents of the region as they must be; ``moved``: beats read and written.
    """

    def __init__(
        self,
        bench: StreamBench,
        config: ChipConfig,
        axi: Any,
        *,
        region: range,
        operations: int,
        gap: float = 0.0,
        longest: int = 16,
        name: str = "",
    ) -> None:
        self._width = config.bus_bytes
        self._rng = random.Random(bench.rng.random())
        self._region, self._longest, self._left = region, longest, operations
        self.data = bytearray(len(region))
        self.moved = 0
        self._reads: deque[_Read] = deque()
        self._writes: deque[Burst] = deque()
        self._beats: deque[dict[str, int]] = deque()
        self._taken = {"r": 0, "b": 0}
        self._answers = {
            channel: bench.receive(Channel(axi, channel), pause=gap, name=f"{name} {channel}") for channel in ("r", "b")
        }
        for channel, source in (("ar", self._ask(False)), ("aw", self._ask(True)), ("w", self._write_beats())):
            bench.send(Channel(axi, channel), source, idle=gap, name=f"{name} {channel}", wait=False)

        async def finish(ctx: Any) -> None:
            while self._left or self._reads or self._writes:
                await ctx.tick()
                self._absorb()

        bench.add(finish, wait=True)

    def _ask(self, write: bool) -> Iterator[dict[str, int] | None]:
        while True:
            self._absorb()
            burst = self._choose(write) if self._left and self._rng.random() < 0.6 else None
            if burst is None:
                yield None
                continue
            self._left -= 1
            self.moved += burst.beats
            at = burst.addr - self._region.start
            if write:
                self._writes.append(burst)
                self._fill(at, burst.beats)
            else:
                self._reads.append(_Read(burst, bytes(self.data[at : at + burst.beats * self._width])))
            yield {
                "addr": burst.addr,
                "len": burst.beats - 1,
                "size": exact_log2(self._width),
                "burst": BURST_INCR,
                "id": 0,
            }

    def _choose(self, write: bool) -> Burst | None:
        """A burst that nothing under way is in the way of."""
        beats = self._rng.choice([1, 1, self._rng.randint(1, self._longest), self._longest])
        rows = len(self._region) // self._width
        start = self._region.start + self._rng.randrange(rows - beats + 1) * self._width
        if start // PAGE_BYTES != (start + beats * self._width - 1) // PAGE_BYTES:
            start = max(start // PAGE_BYTES * PAGE_BYTES, self._region.start)
            beats = min(beats, (PAGE_BYTES - start % PAGE_BYTES) // self._width)
        burst = Burst(start, beats)
        others = [read.burst for read in self._reads] if write else list(self._writes)
        return None if any(self._meet(burst, other) for other in others) else burst

    def _meet(self, one: Burst, other: Burst) -> bool:
        return one.addr < other.addr + other.beats * self._width and other.addr < one.addr + one.beats * self._width

    def _fill(self, at: int, beats: int) -> None:
        for beat in range(beats):
            content, strobe = self._rng.randbytes(self._width), self._rng.getrandbits(self._width)
            for lane in range(self._width):
                if strobe >> lane & 1:
                    self.data[at + beat * self._width + lane] = content[lane]
            self._beats.append(
                {"data": int.from_bytes(content, "little"), "strb": strobe, "last": int(beat == beats - 1)}
            )

    def _write_beats(self) -> Iterator[dict[str, int] | None]:
        while True:
            yield self._beats.popleft() if self._beats else None

    def _absorb(self) -> None:
        for item in self._new("b"):
            if not self._writes:
                raise StreamError("an answer to no write")
            burst = self._writes.popleft()
            if item.resp & RESP_ERROR or item.id:
                raise StreamError(f"{burst} was answered with {item!r}")
        for item in self._new("r"):
            if not self._reads:
                raise StreamError("data that nobody asked for")
            read = self._reads[0]
            read.beats.append(item)
            count = len(read.beats)
            if item.resp & RESP_ERROR or item.id or bool(item.last) != (count == read.burst.beats):
                raise StreamError(f"beat {count} of {read.burst} is {item!r}")
            if item.data != int.from_bytes(read.expected[(count - 1) * self._width : count * self._width], "little"):
                raise StreamError(f"beat {count} of {read.burst} is {item.data:#x}, not {read.expected.hex()}")
            if item.last:
                self._reads.popleft()

    def _new(self, channel: str) -> Iterator[Any]:
        items = self._answers[channel].items
        while self._taken[channel] < len(items):
            self._taken[channel] += 1
            yield items[self._taken[channel] - 1]
