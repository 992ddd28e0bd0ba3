"""One hardware queue: packets as methods, recordings, callbacks, and recovery from faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sley.abi.faults import FaultCode, QueueState, Unit
from sley.abi.instructions import INSTRUCTION_BYTES, MAX_ARGS
from sley.abi.layout import LayoutError
from sley.abi.packets import (
    FENCE_BYTES,
    INLINE_ARGS,
    PACKET_BYTES,
    SEMAPHORE_BYTES,
    PacketOp,
    decode_packet,
    encode_packet,
)
from sley.driver.errors import BadRequest, CallbackFailed, DeviceCorrupt, QueueFault, SleyError
from sley.driver.memory.buffer import Rights
from sley.driver.observe.dump import describe_packet
from sley.driver.queue.fence import Fence, ImportedFence
from sley.driver.queue.recording import Recording
from sley.driver.queue.ring import Ring

if TYPE_CHECKING:
    from sley.driver.context import Context

STATUS_BYTES = 64
"""What a queue has in its context's page of states: the last fence, the read index, and how many callbacks ran."""
_READBACK = 32
_CALLBACKS = 40
_NEVER = 1 << 64
_STOP_CYCLES = 256


class Queue(Ring):
    """Packets go in by the methods named like them; each call rings the doorbell, or one does for a ``batch``.

    Several threads may submit; a packet goes in as a whole.

    Parameters
    ----------
    context: whose queue it is. index: number of the queue in the chip. log2_length: the ring holds 2 ** log2_length
    packets. priority, watchdog: see ``Context.queue``. status: address of its states.
    """

    def __init__(
        self, context: Context, index: int, log2_length: int, priority: int, watchdog: int, status: int
    ) -> None:
        self.space = context.space
        self._status = status
        self._states = self.space.physical(status, STATUS_BYTES)
        super().__init__(context, index, log2_length, self._states + _READBACK)
        self.priority, self.watchdog = priority, watchdog
        self._sequence = self._called = 0
        self._fences: deque[tuple[int, int, int]] = deque()
        self._callbacks: deque[tuple[Fence, int, Callable[[], None]]] = deque()
        self._failure: SleyError | None = None
        self._recording: Recording | None = None

    # Set-up and recovery

    def enable(self) -> None:
        """Turns the queue, which is off, on with an empty ring."""
        registers, name = self.driver.registers, f"QUEUE{self.index}"
        self._restart()
        self.driver.transport.write_memory(self._readback, bytes(4))
        registers.write(f"{name}.OWNER", context=self.context.number, priority=self.priority)
        registers.write(f"{name}.WATCHDOG", cycles=self.watchdog)
        registers.write(f"{name}.BASE", address=self.ring)
        registers.write(f"{name}.SIZE", log2=self.log2_length)
        registers.write(f"{name}.READBACK", address=self._status + _READBACK)
        self.driver.transport.barrier()
        registers.write(f"{name}.CONTROL", enable=1)

    def stop(self) -> bool:
        """Turns the queue off, whatever it does; whether that succeeds within ``Driver.hang_cycles``."""
        registers, name = self.driver.registers, f"QUEUE{self.index}"
        registers.write(f"{name}.CONTROL", abort=1)
        waited = 0
        while self.state is not QueueState.DISABLED:
            if waited >= self.driver.hang_cycles:
                return False
            self.driver.transport.advance(_STOP_CYCLES)
            waited += _STOP_CYCLES
        registers.write(f"{name}.CONTROL", enable=0)
        return True

    def abandon(self, error: SleyError) -> int:
        """Declares every packet that has not finished lost to ``error``; how many there are.

        Queues that wait for one of the fences are let go on: they must not hang for somebody else's fault.
        """
        lost = self._give_up(error)
        memory = self.driver.transport
        for position, place, sequence in self._fences:
            if position >= self.tail and int.from_bytes(memory.read_memory(place, 8), "little") < sequence:
                memory.write_memory(place, sequence.to_bytes(8, "little"))
        self._fences.clear()
        self._callbacks.clear()
        self._release(self._called)
        self._restart()
        return lost

    @property
    def state(self) -> QueueState:
        return QueueState(self.driver.registers.value(f"QUEUE{self.index}.STATE"))

    def recover(self) -> None:
        """After a fault: reads the error record, gives up the packets in the ring and turns the queue on again."""
        registers, name = self.driver.registers, f"QUEUE{self.index}"
        record = registers.read(f"{name}.ERROR")
        index = registers.value(f"{name}.READ_INDEX")
        with suppress(DeviceCorrupt):
            self._update_tail(index)
        (packet,) = self.packets(index, 1)
        inside = registers.read(f"{name}.BUFFER_INDEX")
        if inside["in_buffer"]:
            packet = self._inside(packet, inside["index"])
        fault = QueueFault(
            self.context.number,
            self.index,
            self.tail,
            FaultCode(record["code"]),
            Unit(record["unit"]),
            record["core"],
            registers.value(f"{name}.ERROR_PC"),
            registers.value(f"{name}.ERROR_BLOCK"),
            registers.value(f"{name}.ERROR_ADDRESS"),
            describe_packet(packet),
            inside["index"] if inside["in_buffer"] else None,
        )
        if not self.stop():
            self.driver.force()
            return
        self.abandon(fault)
        self._failure = fault
        self.enable()
        self.context.report(fault, f"QueueFault {fault.code.name}")

    def _inside(self, indirect: bytes, index: int) -> bytes:
        """A packet of the buffer that an INDIRECT points to; the INDIRECT itself if there is none."""
        with suppress(LayoutError, SleyError):
            op, fields = decode_packet(indirect)
            if op is PacketOp.INDIRECT:  # the ring may have been written to since
                return self.space.read(fields["address"] + index * PACKET_BYTES, PACKET_BYTES)
        return indirect

    def check(self, position: int) -> None:
        """Raises the error to which the packet was lost, if it was."""
        error = self.lost(position)
        if error is not None:
            if self._failure is error:
                self._failure = None
            raise error

    def raise_failure(self) -> None:
        """Raises the error of an earlier packet that nobody has seen yet."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error

    # Submission

    def _ready(self, count: int = 1) -> bool:
        """Whether there is room for so many packets; raises what went wrong before."""
        self.context.check()
        if self._failure is not None:
            self.raise_failure()
        return self._has_room(count)

    def _submit(self, op: PacketOp, **fields: int) -> int:
        return self._enqueue(_encode(op, **fields))

    def _enqueue(self, *packets: bytes) -> int:
        """Puts packets into the ring one behind the other; the position of the last."""
        if self._recording is not None:
            return [self._recording.add(packet) for packet in packets][-1]
        while True:
            with self.driver.lock:
                if self._ready(len(packets)):
                    for packet in packets:
                        self._put(packet)
                    return self.head - 1
            self._make_room(len(packets))

    def raw(self, packet: bytes) -> int:
        """Submits 64 bytes as they are, without any check. For tests and debugging."""
        if len(packet) != PACKET_BYTES:
            raise BadRequest(f"a packet has {PACKET_BYTES} bytes, not {len(packet)}")
        return self._enqueue(packet)

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
        self.space.check(program, program_words * INSTRUCTION_BYTES, Rights.EXECUTE, "program")
        for index, value in enumerate(args):
            if not -(1 << 31) <= value < 1 << 32:
                raise BadRequest(f"argument {index} is {value}; it must fit into 32 bits")
        words = [value & 0xFFFFFFFF for value in args]
        fields = {"program_words": program_words, "program": program, "tag": tag, "arg_words": len(args)}
        fields |= {"grid_x": x, "grid_y": y, "grid_z": z, "gang": int(gang)}
        if self._recording is not None:
            return self._recording.add_launch(fields, words)
        if len(words) <= INLINE_ARGS:
            fields |= {f"arg{k}": word for k, word in enumerate(words)}
            return self._enqueue(_encode(PacketOp.LAUNCH, **fields))
        data = b"".join(word.to_bytes(4, "little") for word in words)
        while True:
            with self.driver.lock:
                if self._ready():
                    fields["args"] = self._arguments
                    packet = _encode(PacketOp.LAUNCH, **fields)
                    self.space.write(fields["args"], data)
                    self._put(packet)
                    return self.head - 1
            self._make_room(1)

    def copy(self, src: int, dst: int, length: int) -> None:
        """Copies bytes within device memory; long copies become several packets, so that progress stays visible."""
        self.space.check(src, length, Rights.READ, "source of copy")
        self.space.check(dst, length, Rights.WRITE, "destination of copy")
        if src < dst + length and dst < src + length and length:
            raise BadRequest(f"copy of {length} bytes from {src:#x} to {dst:#x}: the ranges overlap")
        for offset, size in self._pieces(length):
            self._submit(PacketOp.COPY, bytes=size, src=src + offset, dst=dst + offset)

    def fill(self, dst: int, value: int, length: int) -> None:
        """Sets bytes of device memory."""
        self.space.check(dst, length, Rights.WRITE, "destination of fill")
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
        self._refuse_in_recording("a fence")
        self.space.check(address, FENCE_BYTES, Rights.WRITE, "fence")
        place = self.space.physical(address, FENCE_BYTES)
        while True:
            with self.driver.lock:
                if self._ready():
                    return self._put_fence(address, place, interrupt)
            self._make_room(1)

    def _put_fence(self, address: int, place: int, interrupt: bool) -> Fence:
        packet = _encode(PacketOp.FENCE, interrupt=int(interrupt), address=address, sequence=self._sequence + 1)
        self._sequence += 1
        fence = Fence(self, self.head, self._sequence, address, place)
        while self._fences and self._fences[0][0] < self.tail:
            self._fences.popleft()
        self._fences.append((self.head, place, self._sequence))
        self._put(packet)
        return fence

    def wait(self, address: int, value: int) -> int:
        """Holds the queue until the 64-bit word at ``address`` is at least ``value``."""
        self._check_semaphore(address, Rights.READ)
        return self._submit(PacketOp.WAIT, address=address, value=value)

    def signal(self, address: int, value: int) -> int:
        """Writes a 64-bit word when everything before has finished."""
        self._check_semaphore(address, Rights.WRITE)
        return self._submit(PacketOp.SIGNAL, address=address, value=value)

    def _check_semaphore(self, address: int, rights: Rights) -> None:
        if address % SEMAPHORE_BYTES:
            raise BadRequest(f"the semaphore's address {address:#x} is no multiple of {SEMAPHORE_BYTES}")
        self.space.check(address, SEMAPHORE_BYTES, rights, "semaphore")

    def wait_fence(self, fence: Fence | ImportedFence) -> int:
        """Holds the queue until a fence of any queue of this context, or an imported one, has passed or was lost."""
        if isinstance(fence, Fence) and fence.queue.context is not self.context:
            raise BadRequest("the fence is of another context; export it there and import it here")
        return self.wait(fence.address, fence.sequence)

    # Recordings

    @contextmanager
    def record(self) -> Iterator[Recording]:
        """Packets submitted inside are kept instead of executed; see ``submit``. Fences and callbacks, which happen
        once, cannot be."""
        self._refuse_in_recording("another recording")
        self._recording = recording = Recording(self.context)
        try:
            yield recording
        finally:
            self._recording = None

    def _refuse_in_recording(self, what: str) -> None:
        if self._recording is not None:
            raise BadRequest(f"{what} cannot be recorded: it happens once, and a recording many times")

    def submit(self, recording: Recording) -> int:
        """Executes all packets of a recording of this context, in order, as if they stood here."""
        if recording.context is not self.context:
            raise BadRequest("the recording is of another context")
        if recording.closed:
            raise BadRequest("the recording was closed")
        with self.driver.lock:
            place = recording.place()
            place.users[self] = _NEVER
        try:
            position = self.indirect(place.address, len(recording))
        except SleyError:
            del place.users[self]
            raise
        place.users[self] = position
        return position

    def indirect(self, address: int, packets: int) -> int:
        """Executes packets that are elsewhere in memory."""
        if address % PACKET_BYTES:
            raise BadRequest(f"the address of packets {address:#x} is no multiple of {PACKET_BYTES}")
        self.space.check(address, packets * PACKET_BYTES, Rights.READ, "packets")
        return self._submit(PacketOp.INDIRECT, packets=packets, address=address)

    # Callbacks

    def callback(self, function: Callable[[], None]) -> Fence:
        """Calls ``function`` when everything before has finished, from a thread that waits for the device; what comes
        after waits until it has returned. Returns the fence before it. It is not called if the fence is lost."""
        self._refuse_in_recording("a callback")
        if self.length < 2:
            raise BadRequest("a callback needs two packets, and the ring holds one; open the device with a longer ring")
        while True:
            with self.driver.lock:
                if self._ready(2):
                    self._called += 1
                    with self.batch():
                        fence = self._put_fence(self._status, self._states, True)
                        self._put(_encode(PacketOp.WAIT, address=self._status + _CALLBACKS, value=self._called))
                    self._callbacks.append((fence, self._called, function))
                    return fence
            self._make_room(2)

    def take_callback(self) -> tuple[int, Callable[[], None]] | None:
        """The next callback that is due, for whoever runs it: its number, which ``ran`` wants, and the function."""
        if not self._callbacks or not self._callbacks[0][0].passed():
            return None
        _, number, function = self._callbacks.popleft()
        return number, function

    def ran(self, number: int, error: Exception | None) -> None:
        """A callback has returned, or raised."""
        with self.driver.lock:
            if error is not None:
                failure = CallbackFailed(f"callback {number} of queue {self.index} raised {error!r}")
                failure.__cause__ = error
                self._failure = failure
                self.context.report(failure)
            self._release(number)

    def _release(self, number: int) -> None:
        self.driver.transport.write_memory(self._states + _CALLBACKS, number.to_bytes(8, "little"))


def _encode(op: PacketOp, **fields: int) -> bytes:
    try:
        return encode_packet(op, **fields)
    except LayoutError as error:
        raise BadRequest(f"{op.name} packet: {error}") from None
