"""Clients beside each other, on the model and on the gateware: one misbehaves, the others notice nothing."""

import random
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.faults import FaultCode
from sley.abi.instructions import INSTRUCTION_BYTES
from sley.abi.packets import PACKET_BYTES, PacketOp, encode_packet
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import ContextReset, QueueFault
from sley.driver.memory.buffer import Rights
from sley.driver.queue.fence import import_fence
from sley.driver.queue.queue import Queue
from sley.runtime import blas
from sley.runtime.device.device import Device
from sley.runtime.device.program import Program

ENGINES = ["model:edge", pytest.param("fast:edge", marks=pytest.mark.slow)]
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
        self.numbers = np.random.default_rng(seed)
        self.clients: list[Device | None] = [None] * clients
        self.submitted = self.faults = 0
        self.used = driver.pages.statistics().used
        self.stay = driver.context()  # the driver closes with its last client

    def run(self, submissions: int) -> None:
        while self.submitted < submissions:
            index = self.random.randrange(len(self.clients))
            device = self.clients[index]
            if device is None:
                device = self.clients[index] = Device(self.driver, queues=1)
            action = self.random.random()
            if action < 0.4:
                self._copies(device)
            elif action < 0.7:
                self._product(device)
            elif action < 0.9:
                self._fault(device)
            elif action < 0.95:
                self._between(device)
            elif action < 0.98:
                device.context.reset()
            else:
                device.close()
                self.clients[index] = None
        for device in self.clients:
            if device is not None:
                device.close()
        self.stay.close()
        assert self.driver.pages.statistics().used == self.used
        assert not self.driver.buffers
        assert not self.driver.handles
        errors = self.driver.statistics.errors
        assert sum(count for error, count in errors.items() if error.startswith("QueueFault")) == self.faults

    def _copies(self, device: Device) -> None:
        """A chain of fills and copies in memory that is freed while it runs."""
        source, stream = self.random, device.stream
        size, value = source.randint(1, 5000), source.randrange(256)
        arrays = [device.empty(size, np.uint8) for _ in range(source.randint(1, 5))]
        stream.fill(arrays[0], value)
        for before, after in pairwise(arrays):
            stream.copy(after, before)
        self.submitted += len(arrays)
        last = arrays.pop()
        arrays.clear()
        if source.random() < 0.5:
            assert (last.numpy() == value).all()
            self.submitted += 1

    def _product(self, device: Device) -> None:
        m, n, k = (self.random.randint(1, 24) for _ in range(3))
        a, b = (self.numbers.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
        product = blas.gemm(device.array(a), device.array(b))
        self.submitted += 1
        if self.random.random() < 0.7:
            np.testing.assert_array_equal(product.numpy(), a.astype(np.int32) @ b)
            self.submitted += 1

    def _fault(self, device: Device) -> None:
        """Something forbidden, which is found out with the right name while the others work."""
        queue = device.stream.queue
        place = device.array(np.zeros(64, np.uint8))
        launch = {"program_words": 1, "grid_x": 1, "grid_y": 1, "grid_z": 1}
        packets = {
            FaultCode.BAD_PACKET: bytes(PACKET_BYTES),
            FaultCode.PAGE_FAULT: encode_packet(PacketOp.COPY, src=place.address, dst=UNMAPPED, bytes=64),
            FaultCode.PERMISSION: encode_packet(PacketOp.LAUNCH, program=place.address, **launch),
            FaultCode.BAD_FIELD: encode_packet(PacketOp.SIGNAL, address=place.address | 1),
        }
        programs = {
            FaultCode.WATCHDOG: STUCK,
            FaultCode.PC_OUT_OF_RANGE: "add r1, r0, #1",
            FaultCode.LOCAL_ADDRESS: "add r1, r0, #30000\nweights r1, #1\nend",
            FaultCode.SEMAPHORE_LEFTOVER: "sync signal=1\nend",
        }
        kind = self.random.choice([*packets, *programs])
        if kind in packets:
            queue.raw(packets[kind])
        else:
            device.stream.launch(Program(kind.name, tuple(assemble(programs[kind]))))
        lost = queue.fence()
        self.submitted += 2
        self.faults += 1
        with pytest.raises(QueueFault) as caught:
            lost.wait()
        assert (caught.value.code, caught.value.context) == (kind, device.context.number)

    def _between(self, device: Device) -> None:
        """A queue of another context waits for a fence of this one."""
        others = [other for other in self.clients if other is not None and other is not device]
        if not others:
            return
        other = self.random.choice(others)
        fence = device.stream.queue.fence()
        other.stream.queue.wait_fence(import_fence(other.context, fence.export()))
        other.stream.queue.fence().wait()
        assert fence.done
        self.submitted += 3


def soak(url: str, seed: int, submissions: int) -> None:
    with Driver.open(f"{url}?memory=8M", log2_ring=4, hang_cycles=50_000, watchdog=3_000) as driver:
        Soak(driver, seed, driver.config.contexts - 1).run(submissions)
        assert driver.statistics.device_resets == 0


@pytest.mark.parametrize("url", ENGINES)
def test_short_soak(url: str) -> None:
    soak(url, 1, 600)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_soak(seed: int) -> None:
    soak("fast:edge", seed, 10_000)
