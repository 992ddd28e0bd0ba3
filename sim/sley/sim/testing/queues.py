"""A host that knows registers, rings and packets and nothing else, and random work for all queues of a chip."""

import random
from dataclasses import dataclass, field
from typing import Any

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, QueueState
from sley.abi.packets import PACKET_BYTES, PacketOp, encode_packet
from sley.abi.pages import AddressMode
from sley.abi.registers import RegisterMap

AREA = 0x8000
"""Bytes that each queue has for itself; the last of all areas is for semaphores."""
RING, BUFFERS, PROGRAMS, FENCE, SOURCE, TARGET = 0, 0x1000, 0x2000, 0x2F00, 0x3000, 0x5000
RING_LOG2 = 6
SEMAPHORE = 16
WATCHDOG = 2000

COPIES = """
set load.run_bytes, #{row}
set store.run_bytes, #{row}
mul r20, r1, #{row}
add r21, r8, r20
add r22, r9, r20
load r21, r0, r10 signal=0
store r22, r0, r10 wait=0
end
"""
"""Block x copies row x."""
HANGS = "load r8, r0, r9 signal=1\nsync wait=3\nend"
LOOPS = "add r11, r0, #1\nagain: beq r0, r0, again\nend"
FAILS = "add r9, r0, #-1\nadd r10, r0, #1\nload r8, r9, r10\nend"
BUSY = "again: set load.run_bytes, #4\nbeq r0, r0, again\nend"
TEXTS = (COPIES, HANGS, LOOPS, FAILS, BUSY)


class Host:
    """``transport``: of any engine. Registers by name, and the state of every queue."""

    def __init__(self, transport: Any, config: ChipConfig) -> None:
        self.transport, self.config, self.map = transport, config, RegisterMap(config)

    def write(self, name: str, **fields: int) -> None:
        placed = self.map[name]
        self.transport.write32(placed.address, placed.layout.pack(**fields))

    def read(self, name: str) -> dict[str, int]:
        placed = self.map[name]
        return placed.layout.unpack(self.transport.read32(placed.address))

    def open(self, queue: int, base: int, **owner: int) -> None:
        """Sets a queue of context 0 up, which has all memory."""
        self.write("CONTEXT0.ROOT", mode=AddressMode.PHYSICAL)
        self.write(f"QUEUE{queue}.OWNER", **owner)
        self.write(f"QUEUE{queue}.BASE", address=base)
        self.write(f"QUEUE{queue}.SIZE", log2=RING_LOG2)
        self.write(f"QUEUE{queue}.WATCHDOG", cycles=WATCHDOG)
        self.write(f"QUEUE{queue}.CONTROL", enable=1)

    def state(self, queue: int) -> int:
        return self.read(f"QUEUE{queue}.STATE")["state"]

    def record(self, queue: int) -> dict[str, int]:
        """State, indices and error record."""
        names = ("READ_INDEX", "BUFFER_INDEX", "STATE", "ERROR", "ERROR_PC", "ERROR_BLOCK", "ERROR_ADDRESS")
        return {f"{n}.{field}": value for n in names for field, value in self.read(f"QUEUE{queue}.{n}").items()}

    def settle(self, ends: dict[int, int], cycles: int = 400_000) -> None:
        """Lets time pass until each queue has read up to its end, or stopped."""
        while True:
            left = [
                queue
                for queue, end in ends.items()
                if self.state(queue) not in (QueueState.ERROR, QueueState.DISABLED)
                and (self.read(f"QUEUE{queue}.READ_INDEX")["index"] != end or self.state(queue) != QueueState.READY)
            ]
            if not left:
                return
            assert cycles > 0, {queue: self.record(queue) for queue in left}
            self.transport.advance(500)
            cycles -= 500


@dataclass
class Work:
    """What one queue is to do: the packets of its ring, and bytes for its area."""

    queue: int
    packets: list[bytes] = field(default_factory=list)
    parts: list[tuple[int, bytes]] = field(default_factory=list)
    inside: list[bytes] | None = None
    """Packets of the buffer that is being written."""
    buffers: int = 0
    signals: int = 0
    code: FaultCode = FaultCode.NONE
    """With which it ends."""


class Traffic:
    """Random packets for all queues: waits only for what was signalled before, so that any order of the queues ends in
    the same memory; ``faults``: some queues end with a fault."""

    def __init__(self, config: ChipConfig, seed: int, steps: int, faults: bool = True) -> None:
        self.config = config
        self.rng = random.Random(seed)
        self.works = [Work(queue) for queue in range(config.queues)]
        self.priorities = [self.rng.randrange(4) for _ in self.works]
        self.row = config.row_bytes
        self.shared = AREA * config.queues
        programs = [assemble(text.format(row=self.row)) for text in TEXTS]
        self.lengths = [len(words) for words in programs]
        for work in self.works:
            data = bytearray(self.rng.randbytes(AREA - PROGRAMS))
            for k, words in enumerate(programs):
                data[0x200 * k : 0x200 * k + 16 * len(words)] = words_to_bytes(words)
            data[FENCE - PROGRAMS : FENCE - PROGRAMS + 16] = bytes(16)
            work.parts.append((PROGRAMS, bytes(data)))
        for _ in range(steps):
            self._step(self.rng.choice(self.works))
        for work in self.works:
            self._end(work, faults)

    def start(self, host: Host) -> dict[int, int]:
        """Gives it all to a chip; the read index at the end of each queue."""
        order = list(self.works)
        random.Random(len(order)).shuffle(order)
        for work in order:
            area = AREA * work.queue
            for at, data in work.parts:
                host.transport.write_memory(area + at, data)
            host.transport.write_memory(area + RING, b"".join(work.packets))
            host.open(work.queue, area + RING, priority=self.priorities[work.queue])
        for work in order:
            host.write(f"DOORBELL{work.queue}.WRITE_INDEX", index=len(work.packets))
        return {work.queue: len(work.packets) for work in order}

    def memory(self, host: Host) -> bytearray:
        """All of it, but for the times in fences."""
        data = bytearray(host.transport.read_memory(0, self.shared + AREA))
        for work in self.works:
            data[AREA * work.queue + FENCE + 8 : AREA * work.queue + FENCE + 16] = bytes(8)
        return data

    def _put(self, work: Work, packet: bytes) -> None:
        (work.packets if work.inside is None else work.inside).append(packet)

    def _step(self, work: Work) -> None:
        rng, area = self.rng, AREA * work.queue
        kind = rng.random()
        if work.inside is not None and (kind < 0.2 or len(work.inside) == 8):
            self._close(work)
        elif kind < 0.15 and work.inside is None and work.buffers < 7:
            work.inside = []
        elif kind < 0.3:
            size = rng.choice([rng.randrange(40), rng.randrange(0x1000)])
            source, target = area + SOURCE + rng.randrange(0x1000), area + TARGET + rng.randrange(0x1000)
            self._put(work, encode_packet(PacketOp.COPY, src=source, dst=target, bytes=size))
        elif kind < 0.4:
            at = area + TARGET + rng.randrange(0x1000)
            self._put(work, encode_packet(PacketOp.FILL, dst=at, bytes=rng.randrange(0x800), value=rng.randrange(256)))
        elif kind < 0.65:
            target = area + TARGET + self.row * rng.randrange(64)
            arguments = {"arg0": area + SOURCE + rng.randrange(0x800), "arg1": target, "arg2": 1}
            self._put(work, self.launch(work, COPIES, rng.randint(1, 6), **arguments))
        elif kind < 0.8:
            work.signals += 1
            address = self.shared + SEMAPHORE * work.queue
            self._put(work, encode_packet(PacketOp.SIGNAL, address=address, value=work.signals))
        elif kind < 0.95:
            other = rng.choice(self.works)
            if other.inside is None:  # else it may not be submitted yet
                address = self.shared + SEMAPHORE * other.queue
                self._put(work, encode_packet(PacketOp.WAIT, address=address, value=rng.randint(0, other.signals)))
        else:
            self._put(work, encode_packet(PacketOp.NOP))

    def launch(self, work: Work, text: str, blocks: int, **arguments: int) -> bytes:
        """A packet that runs so many blocks of one of ``TEXTS``."""
        which = TEXTS.index(text)
        return encode_packet(
            PacketOp.LAUNCH,
            program=AREA * work.queue + PROGRAMS + 0x200 * which,
            program_words=self.lengths[which],
            tag=self.rng.choice([0, 1 + which]),
            grid_x=blocks,
            grid_y=1,
            grid_z=1,
            arg_words=len(arguments),
            **arguments,
        )

    def _close(self, work: Work) -> None:
        packets, work.inside = work.inside or [], None
        at = BUFFERS + 0x200 * work.buffers
        work.buffers += 1
        work.parts.append((at, b"".join(packets)))
        self._put(work, encode_packet(PacketOp.INDIRECT, address=AREA * work.queue + at, packets=len(packets)))

    def _end(self, work: Work, faults: bool) -> None:
        area = AREA * work.queue
        fence = encode_packet(PacketOp.FENCE, address=area + FENCE, sequence=work.queue + 100, interrupt=1)
        endings = {
            FaultCode.NONE: fence,
            FaultCode.BAD_PACKET: bytes(PACKET_BYTES),
            FaultCode.BAD_FIELD: encode_packet(PacketOp.WAIT, address=area + 4),
            FaultCode.BAD_ADDRESS: encode_packet(PacketOp.FILL, dst=(1 << self.config.addr_bits) - 7, bytes=8),
            FaultCode.LOCAL_ADDRESS: self.launch(work, FAILS, 1, arg0=area),
            FaultCode.WATCHDOG: self.launch(work, HANGS, 1, arg0=area, arg1=1),
        }
        work.code = self.rng.choice(list(endings)) if faults else FaultCode.NONE
        self._put(work, endings[work.code])
        if work.code is not FaultCode.NONE:
            self._put(work, fence)  # never
        if work.inside is not None:
            self._close(work)
        assert len(work.packets) <= 1 << RING_LOG2
