"""Settings of queues and drivers: the bounds themselves are taken, reach the chip, and nothing beyond them is."""

from collections.abc import Iterator

import pytest

from sley.driver.context import EVENTS, Context
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, QueueFault
from sley.driver.queue.queue import Queue

LAST = (1 << 32) - 1


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver.open("model:nano?memory=32M", hang_cycles=1_000) as opened:
        yield opened


def shown(queue: Queue) -> tuple[int, int, int, int]:
    """Context, priority, watchdog and log2 of the length, as the chip has them."""
    registers, name = queue.hardware.registers, f"QUEUE{queue.index}"
    owner = registers.read(f"{name}.OWNER")
    return owner["context"], owner["priority"], registers.value(f"{name}.WATCHDOG"), registers.value(f"{name}.SIZE")


@pytest.mark.parametrize("priority", range(4))
def test_priorities(driver: Driver, priority: int) -> None:
    driver.context()
    assert shown(driver.context().queue(priority)) == (1, priority, 4_000, 6)


@pytest.mark.parametrize("watchdog", [0, 1, LAST])
def test_watchdogs(driver: Driver, watchdog: int) -> None:
    assert shown(driver.context().queue(watchdog=watchdog)) == (0, 1, watchdog, 6)


@pytest.mark.parametrize("log2", [0, 1, 15])
def test_lengths(driver: Driver, log2: int) -> None:
    """The ring holds just so many packets, and begins again."""
    context = driver.context()
    queue, other = context.queue(log2_length=log2), context.queue(log2_length=4)
    assert shown(queue) == (0, 1, 4_000, log2)
    gate = context.heap.allocate(8)
    for turn in range(3 if log2 < 15 else 1):
        context.space.write(gate, bytes(8))
        queue.full_timeout = 0
        with queue.batch():
            queue.wait(gate, 1)
            for _ in range(queue.length - 1):
                queue.nop()
        with pytest.raises(Exception, match=f"all {1 << log2} slots"):
            queue.nop()
        assert queue.pending == queue.length == 1 << log2
        other.signal(gate, 1)
        queue.full_timeout = None
        queue.fence().wait()
        assert queue.head == (turn + 1) * (queue.length + 1)


@pytest.mark.parametrize(
    "bad",
    [
        *({"priority": value} for value in (-1, 4)),
        *({"watchdog": value} for value in (-1, LAST + 1)),
        *({"log2_length": value} for value in (-1, 16)),
    ],
)
def test_what_lies_beyond(driver: Driver, bad: dict[str, int]) -> None:
    context = driver.context()
    (name,) = bad
    with pytest.raises(BadRequest, match=f"{name} is {bad[name]}"):
        context.queue(**bad)
    assert driver.free_queues == driver.config.queues
    assert context.queue().index == 0


def test_defaults_of_a_driver() -> None:
    with Driver.open("model:nano?memory=1M") as driver:
        assert (driver.hang_cycles, driver.watchdog, driver.log2_ring) == (200_000, 800_000, 6)
        assert shown(driver.context().queue()) == (0, 1, 800_000, 6)
    for hang, watchdog in ((1, 4), (LAST // 4, LAST - 3), (LAST // 4 + 1, LAST), (1 << 40, LAST)):
        with Driver.open("model:nano?memory=1M", hang_cycles=hang) as driver:
            assert (driver.hang_cycles, driver.watchdog) == (hang, watchdog)
    for log2 in (0, 15):
        with Driver.open("model:nano?memory=32M", log2_ring=log2, watchdog=7) as driver:
            assert shown(driver.context().queue()) == (0, 1, 7, log2)
    with pytest.raises(BadRequest, match="log2_ring is -1"):
        Driver.open("model:nano?memory=1M", log2_ring=-1)


def test_a_context_remembers_its_last_errors(driver: Driver) -> None:
    context = driver.context()
    heard: list[object] = []
    context.on_error = heard.append
    queue = context.queue()
    for _ in range(EVENTS + 2):
        queue.raw(bytes(64))
        with pytest.raises(QueueFault):
            queue.fence().wait()
    assert (len(heard), len(context.events), EVENTS) == (258, 256, 256)
    assert list(context.events) == heard[2:]
    assert driver.statistics.errors == {"QueueFault BAD_PACKET": 258}


def test_a_recording_holds_as_many_packets_as_an_indirect_can_name(context: Context) -> None:
    queue = context.queues[0]
    with queue.record() as recording:
        for _ in range(65_535):
            queue.nop()
        with pytest.raises(BadRequest, match="at most 65535 packets"):
            queue.nop()
    assert len(recording) == 65_535


@pytest.fixture
def context(driver: Driver) -> Context:
    opened = driver.context()
    opened.queue()
    return opened


def test_tags_run_out(driver: Driver) -> None:
    assert [driver.program_tag() for _ in range(3)] == [1, 2, 3]
    driver._tags = iter((LAST, LAST + 1, LAST + 2))  # type: ignore[assignment]
    assert [driver.program_tag() for _ in range(3)] == [LAST, 0, 0]


@pytest.mark.parametrize(("count", "cycles"), [(0, 0), (LAST, LAST), (3, 100)])
def test_interrupts_are_told_together(driver: Driver, count: int, cycles: int) -> None:
    layout = driver.registers["CHIP.IRQ_COALESCE"].layout.fields
    count, cycles = (min(v, layout[n].field.bounds[1]) for n, v in (("count", count), ("cycles", cycles)))
    driver.coalesce(count, cycles)
    assert driver.registers.read("CHIP.IRQ_COALESCE") == {"count": count, "cycles": cycles}
