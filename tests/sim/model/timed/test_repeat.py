"""Passages that come again are left out: cycles and counters, at any time, are those of a chip that leaves out none."""

import random
import threading
from contextlib import suppress
from dataclasses import replace

import looping_kernels
import numpy as np
import pytest
import tile_chips
from looping_programs import BYTES, PLACES, LoopingProgram
from paired_work import placed
from random_chips import random_chip, random_memory

from sley.abi.asm import assemble
from sley.abi.config import ChipConfig, configuration
from sley.abi.transport import Transport
from sley.driver import Driver, SleyError
from sley.runtime import Device, blas
from sley.runtime.errors import KernelError
from sley.runtime.tile.operations import RoomError
from sley.sim.engines.options import default_engine, parse_options
from sley.sim.engines.timed import TimedTransport
from sley.sim.testing.paired_transport import PairedTransport

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside threads that other tests have left the driver waits in shorter slices, and less comes again."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


class Interrupted(PairedTransport):
    """Looks at counters and at the count of work done while blocks run, each time after other cycles."""

    driver: Driver | None = None
    looks = 0

    def __init__(self, judge: Transport, other: Transport, seed: int) -> None:
        super().__init__(judge, other)
        self._rng = random.Random(seed)

    def wait_irq(self, cycles: int) -> bool:
        while cycles:
            some = min(cycles, self._rng.choice([1, 7, 400, 1500, 6000]))
            if super().wait_irq(some):
                return True
            cycles -= some
            if self.driver and self._rng.random() < 0.5:
                self.looks += 1
                self.driver.counters()
                self.driver.registers.value("CHIP.PROGRESS")
        return False


def pair(config: ChipConfig, timing: dict[str, str] | None = None, seed: int = 0) -> tuple[Interrupted, TimedTransport]:
    options = parse_options("model", config, {"memory": str(min(1 << 26, 1 << config.addr_bits)), **(timing or {})})
    plain, repeating = (TimedTransport(config, options, values=False, repeats=repeats) for repeats in (False, True))
    return Interrupted(plain, repeating, seed), repeating


def products(device: Device, rng: random.Random, count: int) -> None:
    """Some shapes, each with matrices in several places."""
    for _ in range(count):
        m, k, n = (rng.randrange(1, 130) for _ in range(3))
        for _ in range(rng.randrange(1, 4)):
            left, right = (device.array(np.ones(shape, np.int8)) for shape in ((m, k), (k, n)))
            with suppress(KernelError):  # of a chip that is too small for the shape
                blas.gemm(left, right)
        device.stream.synchronize()


def test_products() -> None:
    transport, repeating = pair(configuration("nano"))
    with Driver(transport) as driver:
        transport.driver = driver
        products(Device(driver), random.Random(1), 8)
        assert transport.looks > 10
        cycles, moments, returns = repeating.repeated
        assert cycles > 0.1 * transport.cycles
        assert moments > returns > 10


@pytest.mark.parametrize(
    "timing", [{"bandwidth": "4"}, {"latency": "200", "burst_gap": "7"}, {"bandwidth": "8", "burst_gap": "0"}]
)
def test_memories(timing: dict[str, str]) -> None:
    transport, repeating = pair(configuration("nano"), timing)
    with Driver(transport) as driver:
        transport.driver = driver
        device = Device(driver)
        left, right = (device.array(np.ones(shape, np.int8)) for shape in ((33, 70), (70, 50)))
        out = device.empty((33, 50), np.int32)
        for _ in range(6):
            blas.gemm(left, right, out=out)
            device.stream.synchronize()
        assert repeating.repeated[0] > 0.1 * transport.cycles


DIFFERING = {"channels", "banks", "refresh", "refresh_cycles"}


@pytest.mark.parametrize("timing", [{"channels": "2"}, {"banks": "4"}, {"refresh": "600"}])
def test_memories_in_which_places_differ(timing: dict[str, str]) -> None:
    """Nothing is left out where a burst takes as long as its place in memory says."""
    transport, repeating = pair(configuration("nano"), timing)
    with Driver(transport) as driver:
        products(Device(driver), random.Random(3), 1)
        assert repeating.repeated == (0, 0, 0)


def test_watchdog_ends_where_it_would() -> None:
    """A block is cut off in the same cycle, however much of it was left out."""
    transport, repeating = pair(configuration("nano"))
    loads = "loop #400, {0}\nadd r12, r12, #1\nload r8, r0, r11\n{0}: load r8, r11, r11\n"
    text = "add r11, r0, #1\nset load.run_bytes, #4\n" + loads.format("k") + loads.format("l") + "sync wait=5"
    with Driver(transport) as driver, driver.context() as context:
        queue = context.queue(watchdog=30_000)
        data = context.heap.allocate(256)
        address, words = placed(context, assemble(text))
        queue.launch(address, words, [data], (1, 1, 1))
        with pytest.raises(SleyError, match="WATCHDOG"):
            queue.fence().wait()
        assert repeating.repeated[0] > 1000


def test_last_round_of_a_loop() -> None:
    """A passage ends where the last instruction of the last round is executed, and began in a round behind which
    another one came."""
    transport, _ = pair(configuration("nano"))
    text = "add r11, r0, #1\nset load.run_bytes, #4\nloop #20, last\n" + "add r13, r13, #1\n" * 28
    text += "load r8, r0, r11 signal=0\nlast: sync wait=0\nend"
    with Driver(transport) as driver, driver.context() as context:
        queue = context.queue()
        data = context.heap.allocate(256)
        address, words = placed(context, assemble(text))
        for _ in range(3):
            queue.launch(address, words, [data], (1, 1, 1))
            queue.fence().wait()


def programs(config: ChipConfig, timing: dict[str, str], seeds: range) -> int:
    """Random programs, each some times with data in different places; how many cycles were left out."""
    left_out = 0
    for seed in seeds:
        words = assemble(LoopingProgram(config, seed).text)
        if len(words) > config.program_words:
            continue
        rng = random.Random(seed)
        transport, repeating = pair(config, timing, seed)
        with Driver(transport) as driver, driver.context() as context:
            transport.driver = driver
            queue = context.queue()
            data = context.heap.allocate(PLACES + BYTES)
            for _ in range(2):
                address, length = placed(context, words)
                for _ in range(3):
                    queue.launch(address, length, [data + rng.randrange(PLACES)], (2, 1, 1))
                    queue.fence().wait()
            left_out += repeating.repeated[0]
    return left_out


def kernels(config: ChipConfig, timing: dict[str, str], seeds: range) -> int:
    """Random kernels, some of which a chip has no room for; how many cycles were left out."""
    left_out = 0
    for seed in seeds:
        transport, repeating = pair(config, timing, seed)
        with Driver(transport) as driver:
            transport.driver = driver
            with suppress(KernelError, RoomError):
                looping_kernels.launch(Device(driver), seed)
            left_out += repeating.repeated[0]
    return left_out


SOME = 10
"""Programs, or kernels, of a test."""


def firsts(default: int, slow: range, campaign: range) -> list[object]:
    """Seeds to begin with."""
    marked = [(pytest.mark.slow, slow), (pytest.mark.campaign, campaign)]
    return [default, *(pytest.param(first, marks=mark) for mark, some in marked for first in some)]


@pytest.mark.parametrize("first", firsts(88, range(0, 40, SOME), range(100, 400, SOME)))
def test_programs(first: int) -> None:
    assert programs(configuration("nano"), {}, range(first, first + SOME)) > 0


@pytest.mark.parametrize("first", firsts(50, range(0, 20, SOME), range(60, 360, SOME)))
def test_kernels(first: int) -> None:
    assert kernels(configuration("base"), {}, range(first, first + SOME)) > 0


SLOW, CAMPAIGN = (1, 2, 4), range(5, 14)


@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in SLOW),
        *(pytest.param(seed, marks=pytest.mark.campaign) for seed in CAMPAIGN),
    ],
)
def test_random_chips(seed: int) -> None:
    config = replace(random_chip(seed), cores_x=1, cores_y=1, program_words=1024)
    transport, _ = pair(config, random_memory(seed), seed)
    with Driver(transport) as driver:
        transport.driver = driver
        products(Device(driver), random.Random(seed), 5)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20, 40))
def test_random_programs_on_random_chips(seed: int) -> None:
    timing = {name: value for name, value in random_memory(seed).items() if name not in DIFFERING}
    config = replace(random_chip(seed), cores_x=1, cores_y=1, program_words=1024)
    programs(config, timing, range(1000 * seed, 1000 * seed + SOME))
    config = replace(tile_chips.random_chip(seed), cores_x=1, cores_y=1)
    kernels(config, timing, range(1000 * seed, 1000 * seed + SOME))
