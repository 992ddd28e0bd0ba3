"""The chip of twins beside the gateware: every register that is read, all memory and each cycle are the same."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from sley.abi.asm import assemble, words_to_bytes
from sley.abi.transport import Transport
from sley.driver.device import Driver
from sley.driver.memory.buffer import Rights
from sley.runtime import Device, blas
from sley.sim.engines import fast, model
from sley.sim.engines.options import default_engine
from sley.sim.testing.paired_transport import PairedTransport
from sley.sim.testing.product import random_product

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")

SMALL = {"memory": "2M"}
CHIPS = ["nano", "edge", *(pytest.param(name, marks=pytest.mark.slow) for name in ("base", "quad"))]


def opened(chip: str, **options: str) -> PairedTransport:
    wanted = SMALL | options
    return PairedTransport(
        fast.open_transport(chip, dict(wanted)), model.open_transport(chip, wanted | {"cycles": "on"})
    )


@pytest.fixture(params=CHIPS)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with Driver(opened(request.param), hang_cycles=20_000) as driver:
        yield driver


def test_products(driver: Driver, check: Callable[..., None]) -> None:
    rng, device = np.random.default_rng(3), Device(driver)
    for number in range(20):
        m, n, k = (int(size) for size in np.exp(rng.uniform(0, np.log(30), 3)))
        check(device, random_product(device.config, rng, (m, n, k)), rng if number % 3 == 0 else None)
        device.driver.counters()


MOVES = """
    add r11, r0, #1
    set load.run_bytes, #{bytes}
    set load.chunks, #{chunks}
    load r8, r0, r11 signal=0
    set store.run_bytes, #{bytes}
    store r9, r0, r11 wait=0 signal=1
    sync wait=1
    end
"""


def test_programs_with_copies_and_fences(driver: Driver) -> None:
    """Blocks that move odd numbers of bytes to and from odd places, and packets around them, on two queues."""
    rng = np.random.default_rng(4)
    config = driver.config
    context = driver.context()
    queues = [context.queue(), context.queue()]
    size = 4096
    place = context.heap.allocate(3 * size)
    context.space.write(place, rng.integers(0, 256, size, np.uint8).tobytes())
    for _ in range(12):
        count = int(rng.integers(1, 300))
        text = MOVES.format(bytes=count, chunks=-(-count // config.row_bytes))
        code = words_to_bytes(assemble(text))
        buffer = context.allocate(len(code))
        mapping = context.map(buffer, Rights.EXECUTE)
        buffer.release()
        context.space.write(mapping.address, code)
        queue, other = (queues[k] for k in rng.permutation(2))
        source, target = (place + int(offset) for offset in (rng.integers(0, 1000), size + rng.integers(0, 1000)))
        queue.launch(mapping.address, len(code) // 16, [source, target], (int(rng.integers(1, 4)), 1, 1))
        other.copy(place + int(rng.integers(0, 99)), place + 2 * size, count)
        other.fill(place + 2 * size + count, 5, count)
        for fence in (other.fence(), queue.fence()):
            fence.wait()
        context.space.read(place, 3 * size)
        driver.counters()


FAULTS: dict[str, str] = {
    "beyond": "add r1, r0, #1",
    "outside": "add r11, r0, #1\nset load.run_bytes, #4\nadd r12, r0, #0x7fff\nload r8, r12, r11\nend",
    "unmapped": "add r11, r0, #1\nset load.run_bytes, #4\nadd r12, r0, #0x70000000\nload r12, r0, r11\nend",
    "leftover": "sync signal=3\nend",
    "stuck": "sync wait=5\nend",
}


@pytest.mark.parametrize("text", FAULTS.values(), ids=list(FAULTS))
def test_faults(text: str) -> None:
    """Blocks that fail, and one of another context behind each."""
    with Driver(opened("nano"), hang_cycles=20_000) as driver:
        context = driver.context()
        queue = context.queue(watchdog=500)
        place = context.heap.allocate(64)
        code = words_to_bytes(assemble(text))
        buffer = context.allocate(len(code))
        mapping = context.map(buffer, Rights.EXECUTE)
        context.space.write(mapping.address, code)
        queue.launch(mapping.address, len(code) // 16, [place], (1, 1, 1))
        driver.transport.advance(3000)
        driver.counters()
        device = Device(driver, queues=1)
        a = device.array(np.ones((9, 9), np.int8))
        assert (blas.gemm(a, a).numpy() == 9).all()


@pytest.mark.parametrize(
    "options", [{"latency": "1", "burst_gap": "0"}, {"latency": "200"}, {"link_latency": "50"}], ids=str
)
def test_memory_and_link(options: dict[str, str]) -> None:
    with Device(Driver(opened("nano", **options), hang_cycles=20_000)) as device:
        a = device.array(np.ones((20, 30), np.int8))
        assert (blas.gemm(a, a, trans_b=True).numpy() == 30).all()


def cycles_of(transport: Transport, work: Callable[[Device], None]) -> int:
    with Device(Driver(transport)) as device:
        with device.streams[0].timed() as timing:
            work(device)
        return timing.cycles


def test_time_alone_is_the_same() -> None:
    def work(device: Device) -> None:
        a = device.array(np.ones((40, 50), np.int8))
        blas.gemm(a, a, trans_b=True)

    found = [
        cycles_of(model.open_transport("nano", {"cycles": "on", "values": values}), work)
        for values in ("off", "compiled")
    ]
    assert found[0] == found[1] > 1000
