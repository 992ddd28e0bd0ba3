"""What waits for work in flight: whoever asked for it hears what it raises, and nobody else."""

from collections.abc import Iterator

import pytest

from sley.abi.pages import PAGE_BYTES
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import BufferFreed, CallbackFailed

GATE = PAGE_BYTES + 2048
"""A word in the first page of a client that none of its queues uses."""


@pytest.fixture
def pair() -> Iterator[tuple[Context, Context]]:
    """Two clients with a queue each; that of the first one waits."""
    with Driver.open("model:nano?memory=1M", hang_cycles=5_000) as driver:
        clients = driver.context(), driver.context()
        for client in clients:
            client.queue()
        clients[0].space.write(GATE, bytes(8))
        clients[0].queues[0].wait(GATE, 1)
        yield clients


def fail() -> None:
    raise ValueError("on purpose")


def test_what_is_done_at_once_raises_at_once(pair: tuple[Context, Context]) -> None:
    with pytest.raises(ValueError, match="on purpose"):
        pair[1].when_done(fail)
    assert not pair[1].events


@pytest.mark.parametrize("end", ["signal", "reset", "close", "driver.reset"])
def test_what_is_done_later_is_an_event_of_its_context(pair: tuple[Context, Context], end: str) -> None:
    """Whatever ends the work: everybody goes on, and nobody else hears of it."""
    bad, other = pair
    order: list[int] = []
    bad.when_done(lambda: order.append(1))
    bad.when_done(fail)
    bad.when_done(lambda: order.append(2))
    assert bad.deferred == 3
    {
        "signal": lambda: bad.signal(GATE, 1),
        "reset": bad.reset,
        "close": bad.close,
        "driver.reset": bad.driver.reset,
    }[end]()
    other.queues[0].fence().wait()
    assert bad.driver.wait(lambda: not bad.deferred, timeout=1_000)
    assert order == [1, 2]
    failures = [error for error in bad.events if isinstance(error, CallbackFailed)]
    assert [type(error.__cause__) for error in failures] == [ValueError]
    assert not other.events
    if end != "close":
        bad.queues[0].fence().wait()


def test_a_mapping_is_unmapped_once(pair: tuple[Context, Context]) -> None:
    context = pair[0]
    mapping = context.map(context.allocate(1))
    context.unmap(mapping)
    for _ in range(2):
        with pytest.raises(BufferFreed, match="waits for work that may use it"):
            context.unmap(mapping)
    assert context.deferred == 1
    context.reset()
    with pytest.raises(BufferFreed, match="is not mapped here"):
        context.unmap(mapping)
    with pytest.raises(BufferFreed, match="is not mapped here"):
        pair[1].unmap(context.status)
    assert not [error for error in context.events if isinstance(error, BufferFreed)]
