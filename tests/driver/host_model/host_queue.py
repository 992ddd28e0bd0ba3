"""A queue as its user is promised it: packets in order, until one waits or faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from host_memory import Touch


@dataclass(eq=False)
class Loss:
    """What work was lost to. ``name``: of the error, with the code of a fault. ``position``: of a faulting packet."""

    name: str
    position: int | None = None


@dataclass(eq=False)
class Word:
    """A word that fences of one queue are written to; it only grows."""

    value: int = 0


@dataclass(eq=False)
class HostFence:
    """A fence. ``loss``: what it was lost to, if it was."""

    word: Word
    sequence: int
    passed: bool = False
    loss: Loss | None = None

    @property
    def over(self) -> bool:
        return self.passed or self.loss is not None


def _nothing() -> None:
    """What a packet does that is there for its place in the queue alone."""


@dataclass(eq=False)
class Packet:
    """``name``: as a dump shows it. ``touches``: the bytes that it reads or writes. ``fault``: the code with which the
    chip refuses it. ``ready``: whether it waits no more. ``parts``: those of an INDIRECT."""

    name: str
    action: Callable[[], None] = _nothing
    touches: tuple[Touch, ...] = ()
    fault: str | None = None
    ready: Callable[[], bool] = lambda: True
    fence: HostFence | None = None
    parts: tuple[Packet, ...] = ()


@dataclass(eq=False)
class HostQueue:
    """``length``: of its ring. ``head``: packets so far. ``rung``: of those, how many the device knows of. ``unseen``:
    the error that the next call raises. ``inside``: packets of an INDIRECT that are done."""

    length: int
    pending: deque[Packet] = field(default_factory=deque)
    head: int = 0
    rung: int = 0
    batches: int = 0
    inside: int = 0
    unseen: Loss | None = None
    word: Word = field(default_factory=Word)
    last_sequence: int = 0

    @property
    def tail(self) -> int:
        return self.head - len(self.pending)

    def put(self, *packets: Packet) -> None:
        for packet in packets:
            self.pending.append(packet)
            self.head += 1
        if not self.batches:
            self.ring()

    def ring(self) -> None:
        self.rung = self.head

    def fence(self, word: Word | None = None) -> Packet:
        """The packet of the queue's next fence, which is to be put next. ``word``: where it is, if not with others."""
        self.last_sequence += 1
        fence = HostFence(word or self.word, self.last_sequence)

        def write() -> None:
            fence.word.value = fence.sequence
            fence.passed = True

        return Packet("FENCE", write, fence=fence)

    @property
    def next(self) -> Packet | None:
        """What would be executed next."""
        if self.tail == self.rung:
            return None
        packet = self.pending[0]
        return packet.parts[self.inside] if packet.parts else packet

    def step(self) -> bool:
        """Executes the next packet; whether there was one that could be."""
        packet = self.next
        if packet is None or packet.fault or not packet.ready():
            return False
        packet.action()
        self.inside += 1
        if self.inside >= len(self.pending[0].parts):
            self.inside = 0
            self.pending.popleft()
        return True

    def lose(self, loss: Loss) -> int:
        """Gives up everything that is in the ring; how many packets that is. Nobody waits for a lost fence."""
        for packet in self.pending:
            if packet.fence is not None:
                packet.fence.loss = loss
                packet.fence.word.value = max(packet.fence.word.value, packet.fence.sequence)
        lost = len(self.pending)
        self.pending.clear()
        self.rung, self.inside = self.head, 0
        return lost

    def touched(self) -> list[Touch]:
        """All bytes that packets in the ring read or write."""
        return [touch for packet in self.pending for part in (packet, *packet.parts) for touch in part.touches]
