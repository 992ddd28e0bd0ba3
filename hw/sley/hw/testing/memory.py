"""A memory behind the network, for benches of everything that reads and writes through a node.

memory = MemoryNode(bench, config, dut.request, dut.response, size=4096)
... bench.run() ...
assert memory.data[...] == ...; memory.reads; memory.writes
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sley.abi.config import ChipConfig
from sley.abi.network import RequestKind
from sley.abi.pages import LARGE_PAGE_BYTES, PAGE_BYTES
from sley.abi.placement import Node, memory_node
from sley.hw.noc.messages import walk_answer
from sley.hw.testing.streams import StreamBench, StreamError


def to(config: ChipConfig, node: Node, far: Node | None = None) -> dict[str, Any]:
    """Where a response flit goes: to a node, or to all from it to another."""
    ends = {"dest": node, **({"far": far or node} if config.cores > 1 else {})}
    return {name: {"x": x, "y": y} for name, (x, y) in ends.items()}


@dataclass(frozen=True)
class Burst:
    """One burst as it was asked for."""

    addr: int
    beats: int


@dataclass
class _Answer:
    due: int
    src: Node
    tag: int
    addr: int
    beats: int
    write: bool


@dataclass(frozen=True)
class _Head:
    kind: RequestKind
    src: Node
    tag: int
    addr: int
    beats: int


@dataclass
class _Packet:
    head: _Head | None = None
    flits: int = 0
    message: list[int] = field(default_factory=list)


class MemoryNode:
    """Answers the requests of a block, as a memory of ``size`` bytes with random latency would.

    Parameters: ``request``: stream of request flits out of the block; ``response``: stream into it, of response flits
    (a node) or of response payloads (behind a ``NodePort``); ``latency``: least and greatest number of cycles to an
    answer; ``pause``, ``idle``: probabilities per cycle of not taking a request flit, not giving a response flit.
    Answers are in order among reads and among writes. Bursts that touch ``faulty`` or lie outside get an error.
    Raises on requests that break a rule: unaligned, across a boundary of the longest burst, wrong destination or
    ``last``. A WALK is answered as if the context were PHYSICAL, without delay.

    Members: ``data``; ``reads``, ``writes``: lists of ``Burst``; ``messages``: packets to other nodes, each a pair of
    the destination and the words.
    """

    def __init__(
        self,
        bench: StreamBench,
        config: ChipConfig,
        request: Any,
        response: Any,
        *,
        size: int = 4096,
        latency: tuple[int, int] = (1, 40),
        pause: float = 0.0,
        idle: float = 0.0,
        faulty: range = range(0),
    ) -> None:
        self._bench = bench
        self._config = config
        self._latency = latency
        self._faulty = faulty
        self._packet = _Packet()
        self._read_queue: deque[_Answer] = deque()
        self._write_queue: deque[_Answer] = deque()
        self._walks: deque[_Answer] = deque()
        self._seen = 0
        self.data = bytearray(size)
        self.reads: list[Burst] = []
        self.writes: list[Burst] = []
        self.messages: list[tuple[Node, list[int]]] = []
        self._requests = bench.receive(request, pause=pause, name="memory requests")
        # the members of a payload's layout tell a flit from a bare payload
        self._flits = hasattr(response.payload, "dest")
        bench.send(response, self._answers(), idle=idle, name="memory answers", wait=False)

    @property
    def quiet(self) -> bool:
        """No request is under way."""
        return not (self._read_queue or self._write_queue or self._packet.head)

    def _answers(self) -> Iterator[dict[str, Any] | None]:
        while True:
            self._take()
            if self._walks:
                yield self._walk(self._walks.popleft())
                continue
            ready = [q for q in (self._read_queue, self._write_queue) if q and q[0].due <= self._bench.cycle]
            if not ready:
                yield None
                continue
            answer = self._bench.rng.choice(ready).popleft()
            width = self._config.bus_bytes
            if answer.write:
                yield self._flit(answer, 0, self._bad(answer.addr, answer.beats), True)
                continue
            for k in range(answer.beats):
                if k:
                    self._take()
                at = answer.addr + k * width
                value = int.from_bytes(self.data[at : at + width].ljust(width, b"\0"), "little")
                yield self._flit(answer, value, self._bad(answer.addr, answer.beats), k == answer.beats - 1)

    def _walk(self, answer: _Answer) -> dict[str, Any]:
        page = answer.addr // LARGE_PAGE_BYTES * (LARGE_PAGE_BYTES // PAGE_BYTES)
        rights = {"read": 1, "write": 1, "execute": 1}
        mapping = walk_answer.const({"valid": 1, **rights, "large": 1, "page": page})
        flit = self._flit(answer, mapping.as_bits(), False, True)
        (flit["payload"] if self._flits else flit)["walk"] = 1
        return flit

    def _bad(self, addr: int, beats: int) -> bool:
        end = addr + beats * self._config.bus_bytes
        return end > len(self.data) or (addr < self._faulty.stop and end > self._faulty.start)

    def _flit(self, answer: _Answer, value: int, error: bool, last: bool) -> dict[str, Any]:
        payload = {"data": value, "tag": answer.tag, "error": error}
        if not self._flits:
            return payload
        return {"payload": payload, **to(self._config, answer.src), "last": last}

    def _take(self) -> None:
        while self._seen < len(self._requests.items):
            self._flit_arrived(self._requests.items[self._seen])
            self._seen += 1

    def _flit_arrived(self, flit: Any) -> None:
        packet = self._packet
        if packet.head is None:
            head = flit.payload.head
            packet.head = _Head(head.kind, (head.src.x, head.src.y), head.tag, head.addr, head.beats + 1)
            packet.message = []
            packet.flits = 0
            if not self._began(packet.head, flit):
                return
        else:
            if packet.head.kind == RequestKind.MESSAGE:
                packet.message.append(flit.payload.beat.data & 0xFFFF_FFFF)
            else:
                self._write_beat(packet.head.addr + packet.flits * self._config.bus_bytes, flit.payload.beat)
            packet.flits += 1
        head = packet.head
        left = 0 if head.kind == RequestKind.READ else head.beats - packet.flits
        if head.kind == RequestKind.MESSAGE:
            left = 0 if flit.last else 1
        if bool(flit.last) != (left == 0):
            raise StreamError(f"last is {flit.last} with {left} beats to follow")
        if left == 0:
            if head.kind == RequestKind.WRITE:
                self._write_queue.append(self._answer(head))
            if head.kind == RequestKind.MESSAGE:
                self.messages.append(((flit.dest.x, flit.dest.y), packet.message))
            packet.head = None

    def _began(self, head: _Head, flit: Any) -> bool:
        """Whether the packet that begins with this flit is one that reads or writes."""
        width, most = self._config.bus_bytes, self._config.max_burst
        if head.kind == RequestKind.MESSAGE:
            return False
        if head.kind == RequestKind.WALK:
            self._walks.append(_Answer(0, head.src, head.tag, head.addr, 1, False))
            self._packet.head = None
            return False
        if (flit.dest.x, flit.dest.y) != memory_node(self._config):
            raise StreamError(f"request to node {flit.dest}, where no memory is")
        if head.addr % width or head.addr // width % most + head.beats > most:
            raise StreamError(f"burst of {head.beats} beats at {head.addr:#x} crosses a boundary")
        burst = Burst(head.addr, head.beats)
        (self.reads if head.kind == RequestKind.READ else self.writes).append(burst)
        if head.kind == RequestKind.READ:
            self._read_queue.append(self._answer(head))
        return True

    def _answer(self, head: _Head) -> _Answer:
        due = self._bench.cycle + self._bench.rng.randint(*self._latency)
        return _Answer(due, head.src, head.tag, head.addr, head.beats, head.kind == RequestKind.WRITE)

    def _write_beat(self, at: int, beat: Any) -> None:
        data, strobe = beat.data, beat.strobe
        for k in range(self._config.bus_bytes):
            if strobe >> k & 1 and at + k < len(self.data):
                self.data[at + k] = data >> 8 * k & 0xFF
