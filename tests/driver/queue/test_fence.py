from collections.abc import Callable, Iterator

import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.transport import Transport
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import ContextHang, WaitTimeout
from sley.driver.hardware.engines import open_transport

Upload = Callable[[bytes], tuple[int, int]]


class NoInterrupt:
    """A device whose interrupt line is not connected."""

    def __init__(self, inner: Transport, stuck: bool = False) -> None:
        self.inner, self.stuck = inner, stuck

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def wait_irq(self, cycles: int) -> bool:
        if not self.stuck:
            self.inner.advance(cycles)
        return self.stuck


@pytest.fixture(params=[False, True], ids=["never", "always"])
def deaf(request: pytest.FixtureRequest) -> Iterator[Context]:
    transport = NoInterrupt(open_transport("model:nano?memory=1M"), request.param)
    with Driver(transport, hang_cycles=5_000) as driver:  # type: ignore[arg-type]
        context = driver.context()
        context.queue()
        yield context


def test_waiting_falls_back_to_polling(deaf: Context) -> None:
    fence = deaf.queues[0].fence()
    fence.wait()
    assert fence.done
    deaf.queues[0].raw(bytes(64))
    with pytest.raises(Exception, match="BAD_PACKET"):
        deaf.queues[0].fence().wait()
    deaf.queues[0].fence().wait()


def test_a_hang_is_noticed_without_interrupts(deaf: Context) -> None:
    place = deaf.heap.allocate(8)
    deaf.space.write(place, bytes(8))
    deaf.queues[0].wait(place, 1)
    with pytest.raises(ContextHang):
        deaf.queues[0].fence().wait()


def test_times_only_grow(driver: Driver, context: Context) -> None:
    places = [context.heap.allocate(16) for _ in range(3)]
    for place in places:
        context.space.write(place, bytes(16))
    fences = [context.queues[0].fence(place, interrupt=bool(i % 2)) for i, place in enumerate(places)]
    times = [fence.time for fence in fences]
    assert times == sorted(set(times))
    assert times[-1] <= driver.time


def test_a_timeout_is_not_a_hang(context: Context, upload: Upload) -> None:
    data = words_to_bytes(assemble("add r1, r0, #100\nloop r1, body\nmatmul r0, r0, r0\nbody:\nadd r2, r2, #1\nend"))
    (program, words), place = upload(data), context.heap.allocate(8)
    context.space.write(place, bytes(8))
    context.queues[0].wait(place, 1)
    fence = context.queues[0].fence()
    with pytest.raises(WaitTimeout, match="not reached within 300 cycles"):
        fence.wait(timeout=300)
    context.queues[1].launch(program, words, [], (1, 1, 1))
    context.queues[1].signal(place, 1)
    fence.wait()


def test_one_word_serves_all_fences_of_a_queue(context: Context) -> None:
    first, second = context.queues[0].fence(), context.queues[0].fence()
    second.wait()
    assert first.done
    first.wait()


def test_the_word_of_a_fence_that_has_passed_may_be_used_again(context: Context) -> None:
    place = context.heap.allocate(16)
    context.space.write(place, bytes(16))
    fence = context.queues[0].fence(place)
    fence.wait()
    assert int.from_bytes(context.space.read(place, 8), "little") == fence.sequence
    context.space.write(place, bytes(16))
    assert fence.done
    fence.wait()
    assert not context.events


def interrupted(driver: Driver) -> bool:
    """Whether the chip interrupts soon, once all that was written has arrived."""
    driver.transport.barrier()
    return driver.transport.wait_irq(3_000)


def test_one_interrupt_for_several_fences(driver: Driver, context: Context) -> None:
    driver.coalesce(3, 1_000_000)
    queue = context.queues[0]
    fences = [queue.fence() for _ in range(2)]
    assert not interrupted(driver)
    fences.append(queue.fence())
    assert interrupted(driver)
    driver.service()
    assert not interrupted(driver)
    assert all(fence.done for fence in fences)
    assert driver.statistics.interrupts["fence of queue 0"] == 1


def test_a_lone_fence_interrupts_after_a_while_and_nobody_misses_it(driver: Driver, context: Context) -> None:
    driver.coalesce(100, 2_000)
    fence = context.queues[0].fence()
    assert interrupted(driver)
    driver.service()
    assert fence.done
    driver.coalesce(100, 0xFFFF)
    context.queues[0].fence().wait()
    driver.coalesce(0, 0)
    context.queues[0].fence()
    assert interrupted(driver)
