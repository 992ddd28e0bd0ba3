"""Clients beside each other, on the model and on the gateware: one misbehaves, the others notice nothing."""

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.faults import FaultCode
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.packets import PACKET_BYTES, PacketOp, encode_packet
from sley.driver.buffer import Rights
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import ContextReset, QueueFault
from sley.driver.fence import Fence, import_fence
from sley.driver.queue import Queue

ENGINES = ["model:edge", "fast:edge"]
STUCK = "sync wait=0\nend"
UNMAPPED = 0x4000_0000
ENDLESS = "again:\nbeq r0, r0, again\nend"


@pytest.fixture(params=ENGINES)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with Driver.open(f"{request.param}?memory=8M", hang_cycles=20_000) as driver:
        yield driver


def program(context: Context, text: str) -> tuple[int, int]:
    """Address and length in instructions."""
    code = words_to_bytes(assemble(text))
    buffer = context.allocate(len(code))
    mapping = context.map(buffer, Rights.EXECUTE)
    buffer.release()
    context.space.write(mapping.address, code)
    return mapping.address, len(code) // INSTRUCTION_BYTES


def works(context: Context, queue: Queue, value: int) -> None:
    place = context.heap.allocate(300)
    queue.fill(place, value, 300)
    queue.fence().wait()
    assert context.space.read(place, 300) == bytes([value]) * 300
    context.heap.free(place)


@pytest.mark.parametrize("text", [STUCK, ENDLESS], ids=["stuck", "endless"])
def test_a_block_that_never_ends(driver: Driver, text: str) -> None:
    """Without a watchdog until its context is reset; with one it ends by itself. Others work all the time."""
    bad, good = driver.context(), driver.context()
    mine, other = bad.queue(watchdog=0), good.queue()
    address, words = program(bad, text)
    for end in ("reset", "watchdog"):
        mine.launch(address, words, [], (1, 1, 1))
        lost = mine.fence()
        for value in range(3):
            works(good, other, value)
        if end == "reset":
            assert not lost.done
            bad.reset()
            with pytest.raises(ContextReset):
                lost.wait()
            works(bad, mine, 7)
            mine = bad.queue(watchdog=2_000)
        else:
            with pytest.raises(QueueFault) as caught:
                lost.wait()
            assert caught.value.code is FaultCode.WATCHDOG
    works(bad, mine, 8)
    assert driver.statistics.device_resets == 0
    assert not good.events


class Soak:
    """Clients that come and go, with random work whose results are known, and random faults."""

    def __init__(self, driver: Driver, seed: int, clients: int) -> None:
        self.driver, self.random = driver, random.Random(seed)
        self.clients: list[Context | None] = [None] * clients
        self.submitted = self.faults = 0
        self.used = driver.pages.statistics().used

    def run(self, submissions: int) -> None:
        while self.submitted < submissions:
            index = self.random.randrange(len(self.clients))
            context = self.clients[index]
            if context is None:
                context = self.clients[index] = self.driver.context()
                context.queue(priority=self.random.randrange(4), log2_length=self.random.randint(2, 5))
            action = self.random.random()
            if action < 0.7:
                self._work(context)
            elif action < 0.9:
                self._fault(context)
            elif action < 0.95:
                self._between(context)
            elif action < 0.98:
                context.reset()
            else:
                context.close()
                self.clients[index] = None
        for context in self.clients:
            if context is not None:
                context.close()
        assert self.driver.pages.statistics().used == self.used
        assert not self.driver.buffers
        assert not self.driver.handles
        errors = self.driver.statistics.errors
        assert sum(count for error, count in errors.items() if error.startswith("QueueFault")) == self.faults

    def _work(self, context: Context) -> None:
        """A chain of fills and copies in memory that is freed while it runs."""
        queue, source = context.queues[0], self.random
        size = source.randint(1, 5000)
        places = [context.heap.allocate(size) for _ in range(source.randint(1, 5))]
        value = source.randrange(256)
        queue.fill(places[0], value, size)
        for before, after in pairwise(places):
            queue.copy(before, after, size)
        fence = queue.fence()
        self.submitted += len(places) + 1
        for place in places[:-1]:
            context.when_done(lambda place=place: context.heap.free(place))  # type: ignore[misc]
        if source.random() < 0.5:
            fence.wait()
            assert context.space.read(places[-1], size) == bytes([value]) * size
        context.when_done(lambda: context.heap.free(places[-1]))

    def _fault(self, context: Context) -> None:
        """Something forbidden, which is found out with the right name while the others work."""
        queue = context.queues[0]
        place = context.heap.allocate(64)
        attempts = {
            FaultCode.BAD_PACKET: bytes(PACKET_BYTES),
            FaultCode.PAGE_FAULT: encode_packet(PacketOp.COPY, src=place, dst=UNMAPPED, bytes=64),
            FaultCode.PERMISSION: encode_packet(
                PacketOp.LAUNCH, program=place, program_words=1, grid_x=1, grid_y=1, grid_z=1
            ),
            FaultCode.BAD_FIELD: encode_packet(PacketOp.SIGNAL, address=place | 1),
        }
        kind = self.random.choice(list(attempts))
        queue.raw(attempts[kind])
        lost = queue.fence()
        self.submitted += 2
        self.faults += 1
        with pytest.raises(QueueFault) as caught:
            lost.wait()
        assert (caught.value.code, caught.value.context) == (kind, context.number)
        context.heap.free(place)

    def _between(self, context: Context) -> None:
        """A queue of another context waits for a fence of this one."""
        others = [c for c in self.clients if c is not None and c is not context]
        if not others:
            return
        other = self.random.choice(others)
        fence: Fence = context.queues[0].fence()
        other.queues[0].wait_fence(import_fence(other, fence.export()))
        other.queues[0].fence().wait()
        assert fence.done
        self.submitted += 3


def soak(url: str, seed: int, submissions: int) -> None:
    with Driver.open(f"{url}?memory=8M", log2_ring=4, hang_cycles=50_000) as driver:
        Soak(driver, seed, driver.config.contexts).run(submissions)
        assert driver.statistics.device_resets == 0


@pytest.mark.parametrize("url", ENGINES)
def test_short_soak(url: str) -> None:
    soak(url, 1, 600)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_soak(seed: int) -> None:
    soak("fast:edge", seed, 10_000)
