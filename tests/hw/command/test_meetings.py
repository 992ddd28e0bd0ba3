"""What meets in the command processor: each kind of packet taken behind each kind, of the same queue and of another."""

import random
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

from sley.abi.config import preset
from sley.abi.network import LaunchWord
from sley.abi.packets import PACKET_BYTES, PacketOp, encode_packet
from sley.hw.testing.command.bench import CommandBench
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.meetings import every_pair

NANO = preset("nano")
KINDS = ["copy or fill", "signal", "wait", "launch", "fence", "buffer"]
COVERAGE = Coverage("packets: what meets", {"of one queue": list(product(KINDS, KINDS)), "of another queue": KINDS})
RINGS, BUFFERS, DATA, SIZE = (0x1000, 0x4000), 0x7000, 0x8000, 0xA000
SEMAPHORES = (0x100, 0x200)


class Queue:
    """Packets of one queue, and what they leave in memory: each writes what no other one does."""

    def __init__(self, number: int, kinds: list[str], rng: random.Random) -> None:
        self.number, self.rng = number, rng
        self.written: dict[int, bytes] = {}
        self.buffers: dict[int, bytes] = {}
        self.launched: list[int] = []
        self.signalled = 0
        self.packets = [self._packet(kind, at) for at, kind in enumerate(kinds)]

    def _packet(self, kind: str, at: int) -> bytes:
        rng, place = self.rng, DATA + 0x1000 * self.number + 0x20 * at
        if kind == "signal":
            self.signalled += 1
            return encode_packet(PacketOp.SIGNAL, address=SEMAPHORES[self.number], value=self.signalled)
        if kind == "wait":
            return encode_packet(PacketOp.WAIT, address=SEMAPHORES[self.number], value=self.signalled)
        if kind == "fence":
            self.written[place] = at.to_bytes(8, "little")
            return encode_packet(PacketOp.FENCE, address=place, sequence=at)
        if kind == "launch":
            self.launched.append(0x1000 * self.number + 0x10 * at)
            fields = {"program": self.launched[-1], "program_words": 3, "grid_x": 1, "grid_y": 1, "grid_z": 1}
            return encode_packet(PacketOp.LAUNCH, **fields)
        if kind == "copy or fill" and rng.random() < 0.5:
            size, value = rng.randint(1, 30), rng.randrange(1, 256)
            self.written[place] = bytes([value]) * size + b"\0"
            return encode_packet(PacketOp.FILL, dst=place, bytes=size, value=value)
        if kind == "copy or fill":
            size = rng.randint(1, 30)
            self.written[place] = bytes(range(1, size + 1)) + b"\0"
            return encode_packet(PacketOp.COPY, src=0x300, dst=place, bytes=size)
        self.written[place] = b"\5" * 3 + b"\0"
        buffer = BUFFERS + 0x800 * self.number + PACKET_BYTES * len(self.buffers)
        self.buffers[buffer] = encode_packet(PacketOp.FILL, dst=place, bytes=3, value=5)
        return encode_packet(PacketOp.INDIRECT, address=buffer, packets=1)


def test_meetings() -> None:
    """Of two full rings, so that a packet is there whenever the executor is free."""
    rng = random.Random(1)
    orders = [every_pair(KINDS, rng), rng.sample(KINDS * 3, 3 * len(KINDS))]
    queues = [Queue(number, order, rng) for number, order in enumerate(orders)]
    host = CommandBench(NANO, seed=2, size=SIZE, latency=(1, 4), core_delay=(1, 6), timeout=10_000)
    data, log2 = host.memory.data, 7
    data[0x300:0x320] = bytes(range(1, 0x21))
    for queue in queues:
        for place, packet in queue.buffers.items():
            data[place : place + len(packet)] = packet
    taken: list[tuple[int, int]] = []

    async def watch(ctx: Any) -> None:
        last = [0, 0]
        while True:
            await ctx.tick()
            for number in range(2):
                index = int(ctx.get(host.dut.read_indices[number]))
                if index != last[number]:
                    taken.append((number, last[number]))
                    last[number] = index

    async def test(ctx: Any) -> None:
        for number, queue in enumerate(queues):
            await host.open(ctx, number, base=RINGS[number], log2=log2, readback=0x80 + 4 * number)
            for packet in queue.packets:
                host.put(number, packet)
        for number in range(2):
            await host.ring(ctx, number)
        for number in range(2):
            await host.drained(ctx, number)

    host.bench.add(watch)
    host.run(test)
    for queue in queues:
        for place, content in queue.written.items():
            assert data[place : place + len(content)] == content, (queue.number, place)
        assert data[SEMAPHORES[queue.number]] == queue.signalled
        found = [run[LaunchWord.PROGRAM] for run in host.cores.runs if run[LaunchWord.PROGRAM] >> 12 == queue.number]
        assert found == queue.launched
    for order in orders:
        for pair in pairwise(order):
            COVERAGE.hit("of one queue", pair)
    for (before, _), (number, index) in pairwise(taken):
        if before != number and index < len(orders[number]):
            COVERAGE.hit("of another queue", orders[number][index])


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
