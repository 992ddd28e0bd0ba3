"""Fixtures of the driver's tests: on the golden model, and on the compiled gateware where a compiler is."""

from collections.abc import Callable, Iterator

import pytest

from sley.abi.instructions import INSTRUCTION_BYTES
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.hardware.engines import open_transport
from sley.driver.memory.buffer import Rights
from sley.sim.engines.options import default_engine
from sley.sim.engines.posted import PostedWrites

MODEL = "model:nano?memory=1M"
ENGINES = {
    "model": (MODEL, False),
    "model-posted": (MODEL, True),
    **({"fast": ("fast:nano?memory=1M", False)} if default_engine() == "fast" else {}),
}
"""URL, and whether the bus posts writes."""

Check = Callable[[], None]
Upload = Callable[[bytes], tuple[int, int]]


@pytest.fixture(params=ENGINES.values(), ids=ENGINES.keys())
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    """A device with short rings, which is given up soon when it hangs."""
    url, posted = request.param
    transport = open_transport(url)
    if posted:
        transport = PostedWrites(transport, seed=1)
    with Driver(transport, log2_ring=2, hang_cycles=5_000) as opened:
        yield opened


@pytest.fixture
def context(driver: Driver) -> Context:
    """A client with all queues."""
    opened = driver.context()
    while driver.free_queues:
        opened.queue()
    return opened


@pytest.fixture
def upload(context: Context) -> Upload:
    """Puts a program into memory: address and length in instructions."""

    def put(code: bytes) -> tuple[int, int]:
        mapping = context.map(context.allocate(len(code)), Rights.EXECUTE)
        context.space.write(mapping.address, code)
        return mapping.address, len(code) // INSTRUCTION_BYTES

    return put


@pytest.fixture
def usable(context: Context) -> Check:
    """Asserts that every queue still works."""

    def check() -> None:
        for number, queue in enumerate(context.queues):
            place = context.heap.allocate(7)
            queue.fill(place, 0x40 + number, 7)
            queue.fence().wait()
            assert context.space.read(place, 7) == bytes([0x40 + number]) * 7
            context.heap.free(place)

    return check


@pytest.fixture
def settle(context: Context) -> Check:
    """Waits until every read index is written back, which is after the fence's interrupt."""

    def wait() -> None:
        assert context.driver.wait(lambda: not any(queue.pending for queue in context.queues), timeout=1000, step=16)

    return wait
