"""Recordings in flight: what a queue has to execute stays what it was when it was submitted."""

from collections.abc import Iterator

import pytest
from writer_program import WRITER

from sley.abi.instructions import INSTRUCTION_BYTES
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, QueueFull
from sley.driver.memory.buffer import Rights
from sley.driver.queue.recording import Recording


@pytest.fixture
def context() -> Iterator[Context]:
    """A client with two queues."""
    with Driver.open("model:nano?memory=1M", log2_ring=2) as driver:
        opened = driver.context()
        opened.queue(), opened.queue()
        yield opened


def put_gate(context: Context) -> int:
    """Holds the first queue."""
    gate = context.heap.allocate(8)
    context.space.write(gate, bytes(8))
    context.queues[0].wait(gate, 1)
    return gate


def recorded(context: Context, place: int) -> Recording:
    """Writes a word, 1 at first, to ``place``."""
    code = context.map(context.allocate(len(WRITER)), Rights.EXECUTE)
    context.space.write(code.address, WRITER)
    with context.queues[1].record() as recording:
        context.queues[1].launch(code.address, len(WRITER) // INSTRUCTION_BYTES, [place, 1], (1, 1, 1))
    return recording


def word(context: Context, place: int) -> int:
    return int.from_bytes(context.space.read(place, 4), "little")


def test_in_flight_on_two_queues_and_changed_when_one_is_done(context: Context) -> None:
    first, second = context.queues
    place = context.heap.allocate(4)
    recording, gate = recorded(context, place), put_gate(context)
    first.submit(recording)
    second.submit(recording)
    second.fence().wait()
    for value in (2, 3):
        recording.patch(0, [place, value])
        second.submit(recording)
        second.fence().wait()
        assert word(context, place) == value
    context.signal(gate, 1)
    first.fence().wait()
    assert word(context, place) == 1


def test_in_flight_while_another_submission_is_refused(context: Context) -> None:
    first, second = context.queues
    place = context.heap.allocate(4)
    recording, gate = recorded(context, place), put_gate(context)
    first.submit(recording)
    first.nop(), first.nop()
    first.full_timeout = 0
    with pytest.raises(QueueFull):
        first.submit(recording)
    recording.patch(0, [place, 2])
    second.submit(recording)
    second.fence().wait()
    assert word(context, place) == 2
    context.signal(gate, 1)
    first.full_timeout = None
    first.fence().wait()
    assert word(context, place) == 1


def test_memory_of_a_closed_recording_comes_back_when_it_is_over(context: Context) -> None:
    place = context.heap.allocate(4)
    recording, gate = recorded(context, place), put_gate(context)
    before = context.heap.statistics().used
    context.queues[0].submit(recording)
    recording.patch(0, [place, 2])
    context.queues[1].submit(recording)
    recording.close()
    recording.close()
    assert context.heap.statistics().used == before + 2 * 64
    with pytest.raises(BadRequest, match="was closed"):
        context.queues[1].submit(recording)
    context.signal(gate, 1)
    context.queues[0].fence().wait()
    assert context.driver.wait(lambda: not context.deferred, timeout=1_000)
    assert context.heap.statistics().used == before
