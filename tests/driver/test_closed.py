"""A driver that was closed: every call says so, and none reaches the device."""

import asyncio
from collections.abc import Callable

import pytest

from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import ContextClosed, DriverClosed, SleyError
from sley.driver.hardware.engines import open_transport
from sley.driver.queue.fence import Fence, wait_all, wait_any
from sley.driver.queue.queue import Queue

CALLS: dict[str, Callable[[Driver, Context, Queue, Fence], object]] = {
    "context": lambda driver, context, queue, fence: driver.context(),
    "counters": lambda driver, context, queue, fence: driver.counters(),
    "dump": lambda driver, context, queue, fence: driver.dump(),
    "time": lambda driver, context, queue, fence: driver.time,
    "reset": lambda driver, context, queue, fence: driver.reset(),
    "force": lambda driver, context, queue, fence: driver.force(),
    "service": lambda driver, context, queue, fence: driver.service(),
    "coalesce": lambda driver, context, queue, fence: driver.coalesce(1, 1),
    "wait": lambda driver, context, queue, fence: driver.wait(lambda: True),
    "registers": lambda driver, context, queue, fence: driver.registers.read("CHIP.ID"),
    "transport": lambda driver, context, queue, fence: driver.transport.read_memory(0, 1),
    "allocate": lambda driver, context, queue, fence: context.allocate(1),
    "queue": lambda driver, context, queue, fence: context.queue(),
    "reset of a context": lambda driver, context, queue, fence: context.reset(),
    "read": lambda driver, context, queue, fence: context.space.read(context.status.address, 1),
    "read of a buffer": lambda driver, context, queue, fence: context.status.buffer.read(0, 1),
    "heap": lambda driver, context, queue, fence: context.heap.allocate(1 << 18),
    "nop": lambda driver, context, queue, fence: queue.nop(),
    "state": lambda driver, context, queue, fence: queue.state,
    "pending": lambda driver, context, queue, fence: queue.pending,
    "fence": lambda driver, context, queue, fence: queue.fence(),
    "done": lambda driver, context, queue, fence: fence.done,
    "wait for a fence": lambda driver, context, queue, fence: fence.wait(),
    "wait for any": lambda driver, context, queue, fence: wait_any([fence]),
    "wait for all": lambda driver, context, queue, fence: wait_all([fence], timeout=10),
    "await": lambda driver, context, queue, fence: asyncio.run(awaited(fence)),
}


async def awaited(fence: Fence) -> None:
    await fence


@pytest.mark.parametrize("call", CALLS)
def test_every_call_says_so(call: str) -> None:
    transport = open_transport("model:nano?memory=1M")
    driver = Driver(transport)
    context = driver.context()
    queue = context.queue()
    context.space.write(gate := context.heap.allocate(8), bytes(8))
    queue.wait(gate, 1)
    fence = queue.fence()
    driver.close()
    touched: list[str] = []
    for name in ("read32", "write32", "read_memory", "write_memory", "wait_irq", "advance", "barrier"):
        setattr(transport, name, lambda *_, name=name: touched.append(name))
    with pytest.raises(ContextClosed, match=r"was closed; open (the device again with Driver.open|another one with)"):
        CALLS[call](driver, context, queue, fence)
    assert not touched
    driver.close()
    context.close()


def test_who_awaits_a_fence_is_told() -> None:
    driver = Driver.open("model:nano?memory=1M", hang_cycles=1 << 40)
    context = driver.context()
    queue = context.queue()
    context.space.write(gate := context.heap.allocate(8), bytes(8))
    queue.wait(gate, 1)
    fence = queue.fence()

    async def close_meanwhile() -> None:
        waiting = asyncio.create_task(awaited(fence))
        await asyncio.sleep(0.02)
        driver.close()
        with pytest.raises(ContextClosed):
            await asyncio.wait_for(waiting, 60)

    asyncio.run(close_meanwhile())


def test_what_needs_no_device_goes_on() -> None:
    with Driver.open("model:nano?memory=1M") as driver:
        context = driver.context()
        queue = context.queue()
    assert "closed" in repr(driver)
    assert "closed" in repr(context)
    assert "0 packets" in repr(queue)
    assert driver.statistics.device_resets == 0
    assert driver.memory_bytes == driver.transport.memory_bytes == 1 << 20
    driver.transport.close()
    assert issubclass(DriverClosed, SleyError)
