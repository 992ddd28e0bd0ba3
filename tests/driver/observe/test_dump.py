"""Dumps of rings: empty, in between, full."""

import pytest

from sley.driver.context import Context
from sley.driver.device import Driver


def stuck(context: Context, count: int) -> None:
    """Puts a WAIT that never ends and NOPs into the first queue, so many packets in all."""
    gate = context.heap.allocate(8)
    context.space.write(gate, bytes(8))
    with context.queues[0].batch():
        for packet in range(count):
            context.queues[0].nop() if packet else context.queues[0].wait(gate, 1)
    context.driver.transport.advance(1_000)


@pytest.mark.parametrize("before", [0, 1, 3, 4])
@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_a_ring_shows_all_that_waits(before: int, count: int) -> None:
    """Also when it is full: its indices are then the same but for their highest bit."""
    with Driver.open("model:nano?memory=1M", log2_ring=2) as driver:
        context = driver.context()
        queue = context.queue()
        for _ in range(before):
            queue.nop()
            queue.fence().wait()
        stuck(context, count)
        dump = driver.dump()
        (shown,) = dump.queues
        assert [text.split()[0] for text in shown.packets] == ["WAIT", "NOP", "NOP", "NOP"][:count]
        assert (shown.write_index - shown.read_index) % 8 == count
        assert shown.state.name == ("BLOCKED" if count else "READY")
        assert ("BLOCKED at WAIT" in dump.summary()) == bool(count)
        assert str(dump).count("  NOP") == max(count - 1, 0)
