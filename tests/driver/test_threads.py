"""The driver from several threads and from coroutines."""

import asyncio
import random
import threading
import time
from collections.abc import Callable

import pytest

from sley.abi.packets import PACKET_BYTES
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import QueueFault

ROUNDS = 25


def in_threads(*functions: Callable[[], None]) -> None:
    """Runs all at once; raises what one of them raised."""
    errors: list[BaseException] = []

    def run(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def work(context: Context, queue_number: int, seed: int) -> Callable[[], None]:
    """Random fills and copies on one queue, checked after every fence, with memory that comes and goes."""

    def run() -> None:
        source, queue = random.Random(seed), context.queues[queue_number]
        for _ in range(ROUNDS):
            size = source.randrange(1, 300)
            a, b = context.heap.allocate(size), context.heap.allocate(size)
            value = source.randrange(256)
            queue.fill(a, value, size)
            queue.copy(a, b, size)
            queue.fence().wait()
            assert context.space.read(b, size) == bytes([value]) * size
            context.when_done(lambda a=a: context.heap.free(a))  # type: ignore[misc]
            context.when_done(lambda b=b: context.heap.free(b))  # type: ignore[misc]

    return run


def test_threads_with_a_queue_each_and_with_one_together(driver: Driver, context: Context) -> None:
    before = context.heap.statistics().used
    in_threads(*(work(context, k % 2, k) for k in range(4)))
    assert driver.wait(lambda: not context.deferred, timeout=2000)
    assert context.heap.statistics().used == before
    assert not context.events


def test_threads_with_a_context_each() -> None:
    with Driver.open("model:nano?memory=1M", log2_ring=2) as driver:
        contexts = [driver.context() for _ in range(2)]
        for context in contexts:
            context.queue()

        def faults() -> None:
            for _ in range(5):
                contexts[1].queues[0].raw(bytes(PACKET_BYTES))
                with pytest.raises(QueueFault):
                    contexts[1].queues[0].fence().wait()

        in_threads(work(contexts[0], 0, 1), work(contexts[0], 0, 2), faults)
        assert driver.statistics.errors == {"QueueFault BAD_PACKET": 5}
        assert not contexts[0].events


def test_who_waits_does_not_keep_others_from_submitting(driver: Driver, context: Context) -> None:
    """The gate that one thread waits for is opened by another, after the first has begun to wait."""
    gate = context.heap.allocate(8)
    context.space.write(gate, bytes(8))
    driver.hang_cycles = 1 << 40
    context.queues[0].wait(gate, 1)
    fence = context.queues[0].fence()

    def open_gate() -> None:
        while not driver.waiter.elapsed:
            time.sleep(0.001)
        context.queues[1].signal(gate, 1)
        context.queues[1].fence().wait()

    in_threads(fence.wait, fence.wait, open_gate)
    assert fence.done


def test_coroutines(driver: Driver, context: Context) -> None:
    gate = context.heap.allocate(8)
    context.space.write(gate, bytes(8))
    driver.hang_cycles = 1 << 40
    order: list[str] = []

    async def wait(name: str, value: int) -> None:
        context.queues[0].wait(gate, value)
        await context.queues[0].fence()
        order.append(name)

    async def opener() -> None:
        for value in (1, 2):
            await asyncio.sleep(0.01)
            order.append(f"open {value}")
            context.queues[1].signal(gate, value)
            await context.queues[1].fence()
            await asyncio.sleep(0.2)

    async def everything() -> None:
        await asyncio.gather(wait("first", 1), wait("second", 2), opener())
        context.queues[0].raw(bytes(PACKET_BYTES))
        with pytest.raises(QueueFault):
            await context.queues[0].fence()
        context.signal(gate, 0)
        context.queues[0].wait(gate, 1)
        late = context.queues[0].fence()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_awaitable(late), 0.05)
        context.signal(gate, 1)
        await late

    async def _awaitable(fence: object) -> None:
        await fence  # type: ignore[misc]

    asyncio.run(everything())
    assert order == ["open 1", "first", "open 2", "second"]


def test_callbacks_run_in_order_and_hold_the_queue(driver: Driver, context: Context) -> None:
    queue = context.queues[0]
    place = context.heap.allocate(64)
    seen: list[bytes] = []

    def look() -> None:
        seen.append(context.space.read(place, 1))
        context.queues[1].nop()  # the lock is free

    for value in range(1, 4):
        queue.fill(place, value, 64)
        queue.callback(look)
    queue.fill(place, 9, 64)
    queue.fence().wait()
    assert seen == [b"\1", b"\2", b"\3"]
    assert context.space.read(place, 1) == b"\x09"


def test_a_callback_that_raises(context: Context) -> None:
    queue = context.queues[0]

    def fail() -> None:
        raise ValueError("no")

    queue.callback(fail)
    queue.fence().wait()
    with pytest.raises(Exception, match=r"callback 1 of queue 0 raised ValueError\('no'\)") as caught:
        queue.nop()
    assert isinstance(caught.value.__cause__, ValueError)
    calls: list[int] = []
    queue.raw(bytes(PACKET_BYTES))
    queue.callback(lambda: calls.append(1))
    with pytest.raises(QueueFault):
        queue.fence().wait()
    queue.callback(lambda: calls.append(2))
    queue.fence().wait()
    assert calls == [2]
