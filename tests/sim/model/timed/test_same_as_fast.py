"""The chip of twins beside the gateware: every register that is read, all memory and each cycle are the same."""

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from paired_work import DATA, lists, moves, opened, placed, products, programs, resets
from unit_kernels import RandomKernel

from sley.abi.asm import assemble
from sley.abi.transport import Transport
from sley.driver.device import Driver
from sley.runtime import Device, blas
from sley.sim.engines import model
from sley.sim.engines.options import default_engine

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")

CHIPS = ["nano", *(pytest.param(name, marks=pytest.mark.slow) for name in ("edge", "base", "quad"))]


@pytest.fixture(params=CHIPS)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with Driver(opened(request.param), hang_cycles=20_000) as driver:
        yield driver


def test_products(driver: Driver, check: Callable[..., None]) -> None:
    products(Device(driver), check, 20)


def test_programs_with_copies_and_fences(driver: Driver) -> None:
    moves(driver, 12)


def test_programs_that_fail(driver: Driver) -> None:
    assert 5 < programs(driver, 30, seed=1) < 25


def test_lists(driver: Driver) -> None:
    if driver.config.gather:
        lists(Device(driver), 6, seed=2)


def test_resets(driver: Driver) -> None:
    resets(driver, 12, seed=3)


def test_work_done_in_any_cycle(driver: Driver) -> None:
    """The register that counts it, read again and again while a block works."""
    rng, registers = random.Random(5), driver.registers
    with driver.context() as context:
        queue = context.queue()
        place = context.heap.allocate(DATA)
        for seed in range(6):
            address, words = placed(context, assemble(RandomKernel(driver.config, seed).text + "\nend"))
            queue.launch(address, words, [place, place + DATA // 2], (2, 1, 1))
            fence = queue.fence()
            seen = set()
            while not fence.done:
                seen |= {registers.value("CHIP.PROGRESS") for _ in range(30)}
                driver.transport.advance(rng.randrange(4))
            assert len(seen) > 5


FAULTS: dict[str, str] = {
    "beyond": "add r1, r0, #1",
    "outside": "add r11, r0, #1\nset load.run_bytes, #4\nadd r12, r0, #0x7fff\nload r8, r12, r11\nend",
    "unmapped": "add r11, r0, #1\nset load.run_bytes, #4\nadd r12, r0, #0x70000000\nload r12, r0, r11\nend",
    "leftover": "sync signal=3\nend",
    "stuck": "sync wait=5\nend",
    "full": "add r11, r0, #1\nset load.run_bytes, #4\nloop #20, l\nl: load r8, r0, r11 signal=1\nsync wait=1\nend",
}


@pytest.mark.parametrize("text", FAULTS.values(), ids=list(FAULTS))
def test_faults(text: str) -> None:
    """Blocks that fail, and one of another context behind each. Two queues with watchdogs of their own."""
    with Driver(opened("nano"), hang_cycles=20_000) as driver:
        with driver.context() as context:
            _, queue = context.queue(watchdog=900), context.queue(watchdog=500)
            place = context.heap.allocate(64)
            address, words = placed(context, assemble(text))
            queue.launch(address, words, [place], (1, 1, 1))
            driver.transport.advance(3000)
            driver.counters()
        device = Device(driver, queues=1)
        a = device.array(np.ones((9, 9), np.int8))
        assert (blas.gemm(a, a).numpy() == 9).all()


@pytest.mark.parametrize(
    "options",
    [
        {"latency": "1", "burst_gap": "0"},
        {"latency": "200", "burst_gap": "9"},
        {"bandwidth": "1"},
        {"link_latency": "50"},
    ],
    ids=str,
)
def test_memory_and_link(options: dict[str, str]) -> None:
    with Device(Driver(opened("nano", **options), hang_cycles=20_000)) as device:
        a = device.array(np.ones((20, 30), np.int8))
        assert (blas.gemm(a, a, trans_b=True).numpy() == 30).all()
        device.driver.counters()


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
