"""One hardware queue: a ring of packets in device memory, its doorbell, and what became of each packet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.instructions import INSTRUCTION_BYTES, MAX_ARGS
from sley.abi.layout import LayoutError
from sley.abi.packets import FENCE_BYTES, INLINE_ARGS, PACKET_BYTES, PacketOp, encode_packet
from sley.driver.dump import describe_packet
from sley.driver.errors import BadRequest, DeviceCorrupt, QueueFault, QueueFull, SleyError
from sley.driver.fence import Fence

if TYPE_CHECKING:
    from sley.driver.device import Driver

_ARGS_BYTES = 128
_STATUS_BYTES = 64
_READBACK = 32
_POLL_CYCLES = 256


class Queue:
    """Packets go in by the methods named like them; each call rings the doorbell, or one does for a ``batch``.

    Positions count packets for ever; the device's indices count to twice the ring's length, so that a full ring
    differs from an empty one. Every slot of the ring has a place for kernel arguments of its own, so arguments live
    exactly as long as their packet.

    Parameters
    ----------
    driver: the device. index: number of the queue. log2_length: the ring holds 2 ** log2_length packets.

    Attributes
    ----------
    full_timeout: cycles to wait for a slot of a full ring before ``QueueFull``; 0 raises at once, ``None`` waits as
        long as the device makes progress.
    """

    def __init__(self, driver: Driver, index: int, log2_length: int = 6) -> None:
        self.driver = driver
        self.index = index
        self.log2_length = log2_length
        self.length = 1 << log2_length
        self.full_timeout: int | None = None
        self.ring = driver.memory.allocate(self.length * (PACKET_BYTES + _ARGS_BYTES) + _STATUS_BYTES)
        self._args = self.ring + self.length * PACKET_BYTES
        self._status = self._args + self.length * _ARGS_BYTES
        self._head = self._tail = self._rung = self._origin = 0
        self._sequence = 0
        self._lost: list[tuple[int, int, SleyError]] = []
        self._failure: SleyError | None = None
        self._batches = 0

    # Set-up and recovery

    def enable(self) -> None:
        """Turns the queue on with an empty ring."""
        registers, name = self.driver.registers, f"QUEUE{self.index}"
        registers.write(f"{name}.CONTROL", enable=0)
        self._origin = self._tail = self._rung = self._head
        self.driver.transport.write_memory(self._status + _READBACK, bytes(4))
        registers.write(f"{name}.BASE", address=self.ring)
        registers.write(f"{name}.SIZE", log2=self.log2_length)
        registers.write(f"{name}.READBACK", address=self._status + _READBACK)
        registers.write(f"{name}.CONTROL", enable=1)

    def abandon(self, error: SleyError) -> None:
        """Declares every packet that has not finished lost to ``error``."""
        with suppress(DeviceCorrupt):
            self._update_tail()
        if self._tail < self._head:
            self._lost.append((self._tail, self._head, error))

    @property
    def state(self) -> QueueState:
        return QueueState(self.driver.registers.value(f"QUEUE{self.index}.STATE"))

    def recover(self) -> None:
        """After a fault: reads the error record, gives up the packets in the ring and turns the queue on again."""
        registers, name = self.driver.registers, f"QUEUE{self.index}"
        record = registers.read(f"{name}.ERROR")
        slot = registers.value(f"{name}.READ_INDEX") % self.length
        packet = self.driver.transport.read_memory(self.ring + slot * PACKET_BYTES, PACKET_BYTES)
        fault = QueueFault(
            self.index,
            FaultCode(record["code"]),
            Unit(record["unit"]),
            record["core"],
            registers.value(f"{name}.ERROR_PC"),
            registers.value(f"{name}.ERROR_BLOCK"),
            registers.value(f"{name}.ERROR_ADDRESS"),
            describe_packet(packet),
        )
        self.abandon(fault)
        self._failure = fault
        self.enable()

    # What became of packets

    def _update_tail(self) -> None:
        data = self.driver.transport.read_memory(self._status + _READBACK, 4)
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
        self._update_tail()
        return self._head - self._tail

    def finished(self, position: int) -> bool:
        """Whether the packet at ``position`` is no longer in the ring."""
        self._update_tail()
        return self._tail > position

    def lost(self, position: int) -> bool:
        """Whether the packet was given up after a fault or a reset."""
        return any(first <= position < last for first, last, _ in self._lost)

    def check(self, position: int) -> None:
        """Raises the error to which the packet was lost, if it was."""
        for first, last, error in self._lost:
            if first <= position < last:
                if self._failure is error:
                    self._failure = None
                raise error

    def raise_failure(self) -> None:
        """Raises the error of an earlier packet that nobody has seen yet."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error

    # Submission

    def _reserve(self) -> int:
        """Slot for the next packet; waits while the ring is full."""
        self.raise_failure()
        if self._head - self._tail >= self.length and self.pending >= self.length:
            self.ring_doorbell()
            timeout = self.full_timeout
            if not self.driver.wait(lambda: self.pending < self.length, timeout=timeout, step=_POLL_CYCLES):
                raise QueueFull(
                    f"queue {self.index}: all {self.length} slots of the ring are in use after {timeout} cycles; wait "
                    f"for a fence, allow more time, or open the device with a longer ring"
                )
            self.raise_failure()
        return (self._head - self._origin) % self.length

    def _put(self, slot: int, packet: bytes) -> int:
        self.driver.transport.write_memory(self.ring + slot * PACKET_BYTES, packet)
        position = self._head
        self._head += 1
        if not self._batches:
            self.ring_doorbell()
        return position

    def _submit(self, op: PacketOp, **fields: int) -> int:
        return self._put(self._reserve(), _encode(op, **fields))

    def ring_doorbell(self) -> None:
        """Tells the device about the packets that it does not know yet."""
        if self._rung != self._head:
            self._rung = self._head
            index = (self._head - self._origin) % (2 * self.length)
            self.driver.registers.write(f"DOORBELL{self.index}.WRITE_INDEX", index=index)

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Packets submitted inside reach the device by one doorbell at the end."""
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
            if not self._batches:
                self.ring_doorbell()

    def raw(self, packet: bytes) -> int:
        """Submits 64 bytes as they are, without any check. For tests and debugging."""
        if len(packet) != PACKET_BYTES:
            raise BadRequest(f"a packet has {PACKET_BYTES} bytes, not {len(packet)}")
        return self._put(self._reserve(), packet)

    def nop(self) -> int:
        return self._submit(PacketOp.NOP)

    def launch(
        self,
        program: int,
        program_words: int,
        args: Sequence[int],
        grid: tuple[int, int, int],
        tag: int = 0,
        gang: bool = False,
    ) -> int:
        """Runs a grid of blocks of the program at ``program``; ``args`` are 32-bit words. In a ``gang`` blocks fill the
        chip: block (x, y, z) runs on the core in column x and row y, together with all others of this z.

        A ``tag`` from ``Driver.program_tag`` promises that the program never changes: a core that still holds it does
        not fetch it again.
        """
        limit = self.driver.config.program_words
        if not 1 <= program_words <= limit:
            raise BadRequest(f"the program has {program_words} instructions; this chip's cores hold 1 to {limit}")
        if len(args) > MAX_ARGS:
            raise BadRequest(f"the kernel gets {len(args)} arguments; at most {MAX_ARGS} are possible")
        if program % INSTRUCTION_BYTES:
            raise BadRequest(f"the program's address {program:#x} is no multiple of {INSTRUCTION_BYTES}")
        x, y, z = grid
        if min(grid) < 1 or x * y * z >= 1 << 32:
            raise BadRequest(f"the grid is {grid}; every side must be at least 1 and the product below 2^32")
        cores = self.driver.config.cores_x, self.driver.config.cores_y
        if gang and (x, y) != cores:
            raise BadRequest(
                f"the grid of a gang is {grid}; on this chip it must be {cores[0]} x {cores[1]} x any number: a block "
                "for each core, as the cores lie in the mesh"
            )
        self.driver.memory.check(program, program_words * INSTRUCTION_BYTES, "program")
        for index, value in enumerate(args):
            if not -(1 << 31) <= value < 1 << 32:
                raise BadRequest(f"argument {index} is {value}; it must fit into 32 bits")
        slot = self._reserve()
        words = [value & 0xFFFFFFFF for value in args]
        fields = {
            "gang": int(gang),
            "program_words": program_words,
            "program": program,
            "tag": tag,
            "arg_words": len(args),
        }
        if len(words) <= INLINE_ARGS:
            fields |= {f"arg{k}": word for k, word in enumerate(words)}
        else:
            fields["args"] = self._args + slot * _ARGS_BYTES
            data = b"".join(word.to_bytes(4, "little") for word in words)
            self.driver.transport.write_memory(fields["args"], data)
        return self._put(slot, _encode(PacketOp.LAUNCH, grid_x=x, grid_y=y, grid_z=z, **fields))

    def copy(self, src: int, dst: int, length: int) -> None:
        """Copies bytes within device memory; long copies become several packets, so that progress stays visible."""
        self.driver.memory.check(src, length, "source of copy")
        self.driver.memory.check(dst, length, "destination of copy")
        if src < dst + length and dst < src + length and length:
            raise BadRequest(f"copy of {length} bytes from {src:#x} to {dst:#x}: the ranges overlap")
        for offset, size in self._pieces(length):
            self._submit(PacketOp.COPY, bytes=size, src=src + offset, dst=dst + offset)

    def fill(self, dst: int, value: int, length: int) -> None:
        """Sets bytes of device memory."""
        self.driver.memory.check(dst, length, "destination of fill")
        for offset, size in self._pieces(length):
            self._submit(PacketOp.FILL, value=value, bytes=size, dst=dst + offset)

    def _pieces(self, length: int) -> Iterator[tuple[int, int]]:
        piece = max(PACKET_BYTES, self.driver.hang_cycles // 8 * self.driver.config.bus_bytes) & -PACKET_BYTES
        for offset in range(0, length, piece):
            yield offset, min(piece, length - offset)

    def fence(self, address: int | None = None, interrupt: bool = True) -> Fence:
        """A fence behind everything submitted so far; it is written to the queue's own place unless told another."""
        if address is None:
            address = self._status
        if address % FENCE_BYTES:
            raise BadRequest(f"the fence's address {address:#x} is no multiple of {FENCE_BYTES}")
        self.driver.memory.check(address, FENCE_BYTES, "fence")
        sequence = self._sequence + 1
        position = self._submit(PacketOp.FENCE, interrupt=int(interrupt), address=address, sequence=sequence)
        self._sequence = sequence
        return Fence(self, position, sequence, address)

    def wait(self, address: int, value: int) -> int:
        """Holds the queue until the 64-bit word at ``address`` is at least ``value``."""
        self._check_semaphore(address)
        return self._submit(PacketOp.WAIT, address=address, value=value)

    def signal(self, address: int, value: int) -> int:
        """Writes a 64-bit word when everything before has finished."""
        self._check_semaphore(address)
        return self._submit(PacketOp.SIGNAL, address=address, value=value)

    def _check_semaphore(self, address: int) -> None:
        if address % 8:
            raise BadRequest(f"the semaphore's address {address:#x} is no multiple of 8")
        self.driver.memory.check(address, 8, "semaphore")

    @property
    def doorbell_time(self) -> int:
        """Device cycle of the last doorbell."""
        return self.driver.registers.wide(f"QUEUE{self.index}.DOORBELL_TIME")


def _encode(op: PacketOp, **fields: int) -> bytes:
    try:
        return encode_packet(op, **fields)
    except LayoutError as error:
        raise BadRequest(f"{op.name} packet: {error}") from None
