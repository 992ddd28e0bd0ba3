"""A ring of packets in device memory: they go in, the doorbell rings, and the device says how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sley.abi.errors import SleyError
from sley.abi.packets import PACKET_BYTES
from sley.driver.errors import DeviceCorrupt, QueueFull
from sley.driver.queue.client import AsyncWaiter, Client
from sley.driver.queue.control import QueueControl
from sley.driver.queue.losses import Losses
from sley.driver.queue.packets import ARGS_BYTES

_READBACK_BYTES = 4
_POLL_CYCLES = 256


class Ring:
    """The bookkeeping of a queue: which packets wait, which are over and which were lost.

    Positions count packets for ever; the device's indices count to twice the ring's length, so that a full ring
    differs from an empty one. Every slot of the ring has a place for kernel arguments of its own, so arguments live
    exactly as long as their packet.

    Parameters
    ----------
    context: whose memory it is in. waiter: lets the device run when the ring is full. index: number of the queue in the
    chip. log2_length: the ring holds 2 ** log2_length packets. readback: physical address of the word where the device
    writes its read index.

    Attributes
    ----------
    full_timeout: cycles to wait for a slot of a full ring before ``QueueFull``; 0 raises at once, ``None`` waits as
        long as the device makes progress.
    """

    def __init__(self, context: Client, waiter: AsyncWaiter, index: int, log2_length: int, readback: int) -> None:
        self.context, self.space, self.waiter = context, context.space, waiter
        self.hardware = self.space.hardware
        self.control = QueueControl(self.hardware, index)
        self.index, self.log2_length = index, log2_length
        self.length = 1 << log2_length
        self.full_timeout: int | None = None
        self.ring = context.heap.allocate(self.length * (PACKET_BYTES + ARGS_BYTES))
        self._args = self.ring + self.length * PACKET_BYTES
        self._slots = [
            place
            for piece in self.space.pieces(self.ring, self.length * PACKET_BYTES)
            for place in range(piece.address, piece.address + piece.length, PACKET_BYTES)
        ]
        self._readback = readback
        self._head = self._tail = self._rung = self._origin = self._retired = 0
        self._batches = 0
        self.losses = Losses()

    def restart(self) -> None:
        """The next packet goes into the first slot; those before are over or given up."""
        self._origin = self._tail = self._rung = self._retired = self._head

    def start(self) -> None:
        """Like ``restart``, for the device too; the queue is off."""
        self.restart()
        self.hardware.transport.write_memory(self._readback, bytes(_READBACK_BYTES))

    def packets(self, first: int, count: int) -> Iterator[bytes]:
        """What the ring holds from an index on."""
        for index in range(first, first + count):
            yield self.hardware.transport.read_memory(self._slots[index % self.length], PACKET_BYTES)

    @property
    def tail(self) -> int:
        """Position of the first packet not known to be over."""
        return self._tail

    @property
    def head(self) -> int:
        """Position of the next packet that is submitted."""
        return self._head

    def __repr__(self) -> str:
        """Without a look at the device."""
        return (
            f"Queue({self.index} of context {self.context.number}, {self.head} packets submitted, {self.tail} known to "
            "be over)"
        )

    # What became of packets

    def update_tail(self, index: int | None = None) -> None:
        """Takes a read index of the device, or the one in memory. Raises ``DeviceCorrupt`` if it is nonsense."""
        if index is None:
            data = self.hardware.transport.read_memory(self._readback, _READBACK_BYTES)
            index = int.from_bytes(data, "little")
        moved = (index - (self._tail - self._origin)) % (2 * self.length)
        if index >= 2 * self.length or moved > self._rung - self._tail:
            raise DeviceCorrupt(
                f"queue {self.index}: the device wrote read index {index}; it must be below {2 * self.length} and not "
                f"pass the write index {(self._rung - self._origin) % (2 * self.length)}; reset the device"
            )
        self._tail += moved

    @property
    def pending(self) -> int:
        """Packets in the ring that have not finished."""
        with self.hardware.lock:
            if self._head != self._tail:
                self.update_tail()
            return self._head - self._tail

    def finished(self, position: int) -> bool:
        """Whether the packet at ``position`` is no longer in the ring."""
        with self.hardware.lock:
            if self._tail <= position:
                self.update_tail()
            return self._tail > position

    def retired(self, position: int) -> bool:
        """Like ``finished``, but as the chip's registers say: the word in memory, which is quicker to ask, could have
        been written by the client. Raises ``DeviceCorrupt`` if it holds nonsense."""
        with self.hardware.lock:
            if self._retired <= position and self.finished(position):
                self._update_retired()
            return self._retired > position

    def _update_retired(self) -> None:
        """Never more than a ring's length behind, so the index says all."""
        index = self.control.value("READ_INDEX")
        self._retired += (index - (self._retired - self._origin)) % (2 * self.length)

    @property
    def idle(self) -> bool:
        """Whether everything submitted is known to have retired."""
        return self._retired == self._head

    def lost(self, position: int) -> SleyError | None:
        """The fault or reset for which the packet was given up, if it was."""
        return self.losses.error(position)

    def check(self, position: int) -> None:
        """Raises the error to which the packet was lost, if it was."""
        self.losses.check(position)

    def raise_failure(self) -> None:
        """Raises the error of an earlier packet that nobody has seen yet."""
        self.losses.raise_unseen()

    def give_up(self, error: SleyError) -> int:
        """Declares every packet that has not finished lost to ``error``; how many there are."""
        with suppress(DeviceCorrupt):
            self.update_tail()
        lost = self._head - self._tail
        if lost:
            self.losses.add(self._tail, self._head, error)
        return lost

    # Packets go in

    def _has_room(self, count: int = 1) -> bool:
        room = self.length - count
        if self._head - self._retired > room and self.pending <= room:
            self._update_retired()
        return self._head - self._retired <= room

    @property
    def _slot(self) -> int:
        """Where in the ring the next packet goes."""
        return (self._head - self._origin) % self.length

    @property
    def _arguments(self) -> int:
        """Where arguments of the next packet go."""
        return self._args + self._slot * ARGS_BYTES

    def _put(self, packet: bytes) -> None:
        self.hardware.transport.write_memory(self._slots[self._slot], packet)
        self._head += 1
        if not self._batches:
            self.ring_doorbell()

    def _make_room(self, count: int) -> None:
        self.ring_doorbell()
        timeout = self.full_timeout
        room = self.length - count
        if not self.waiter.wait(
            lambda: self.pending <= room, timeout=timeout, step=_POLL_CYCLES, contexts=(self.context,)
        ):
            raise QueueFull(
                f"queue {self.index}: all {self.length} slots of the ring are in use after {timeout} cycles; wait "
                f"for a fence, allow more time, or open the device with a longer ring"
            )

    def ring_doorbell(self) -> None:
        """Tells the device about the packets that it does not know yet."""
        with self.hardware.lock:
            if self._rung != self._head:
                self._rung = self._head
                self.control.ring((self._head - self._origin) % (2 * self.length))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Packets submitted inside reach the device by one doorbell at the end."""
        with self.hardware.lock:
            self._batches += 1
        try:
            yield
        finally:
            with self.hardware.lock:
                self._batches -= 1
                if not self._batches:
                    self.ring_doorbell()

    @property
    def doorbell_time(self) -> int:
        """Device cycle of the last doorbell."""
        return self.control.doorbell_time
