"""The driver on a bus that posts writes: every barrier is needed, and there are enough of them."""

import sys
from pathlib import Path

import pytest

import sley.driver.device
from sley.abi.transport import Transport
from sley.driver.context import Context
from sley.driver.device import Driver
from sley.driver.errors import QueueFault
from sley.driver.hardware.engines import open_transport
from sley.driver.memory.buffer import READ_WRITE
from sley.sim.engines.posted import PostedWrites

FOLDER = Path(sley.driver.device.__file__).parent
SITES = [
    (path.name, number)
    for path in sorted(FOLDER.rglob("*.py"))
    for number, line in enumerate(path.read_text().splitlines(), 1)
    if ".barrier()" in line
]
"""File and line of every barrier in the driver."""
SEEDS = range(12)


class WithoutOne(PostedWrites):
    """Ignores the barriers that one line of the driver asks for."""

    def __init__(self, inner: Transport, seed: int, missing: tuple[str, int] | None) -> None:
        super().__init__(inner, seed)
        self.missing, self.met = missing, 0

    def barrier(self) -> None:
        caller = sys._getframe(1)
        if (Path(caller.f_code.co_filename).name, caller.f_lineno) == self.missing:
            self.met += 1
        else:
            super().barrier()


def packets(context: Context) -> None:
    """Work on a queue arrives as it was submitted."""
    queue = context.queues[0]
    place = context.heap.allocate(64)
    for value in range(10):
        queue.fill(place, value, 32)
        queue.copy(place, place + 32, 32)
        queue.fence().wait()
        assert context.space.read(place, 64) == bytes([value]) * 64


def faults(context: Context) -> None:
    """A queue is set up again after each of them."""
    queue = context.queues[0]
    for _ in range(3):
        queue.raw(bytes(64))
        with pytest.raises(QueueFault, match="BAD_PACKET"):
            queue.fence().wait()
        packets(context)
    context.reset()
    packets(context)


def revocation(context: Context) -> None:
    """What is unmapped while a queue polls it is out of its reach at once."""
    queue = context.queues[1]
    for _ in range(6):
        mapping = context.space.map(context.allocate(4096), READ_WRITE)
        context.space.write(mapping.address, bytes(8))
        queue.wait(mapping.address, 1)
        lost = queue.fence()
        context.driver.transport.advance(100)
        context.space.unmap(mapping)
        with pytest.raises(QueueFault, match="PAGE_FAULT"):
            lost.wait(timeout=1_000)


SCENARIOS = (packets, faults, revocation)


def failures(missing: tuple[str, int] | None) -> tuple[int, int]:
    """Runs in which something went wrong, and calls of the barrier that is left out."""
    wrong = met = 0
    for seed in SEEDS:
        bus = WithoutOne(open_transport("model:nano?memory=1M"), seed, missing)
        try:
            with Driver(bus, log2_ring=2, hang_cycles=2_000) as driver:
                context = driver.context()
                context.queue(), context.queue()
                for scenario in SCENARIOS:
                    scenario(context)
        except (Exception, pytest.fail.Exception):
            wrong += 1
        met += bus.met
    return wrong, met


def test_the_barriers_are_enough() -> None:
    assert failures(None) == (0, 0)


@pytest.mark.parametrize("site", SITES, ids=[f"{name}:{number}" for name, number in SITES])
def test_every_barrier_is_needed(site: tuple[str, int]) -> None:
    wrong, met = failures(site)
    assert met
    assert wrong, f"nothing goes wrong without the barrier in {site[0]}, line {site[1]}"


def test_the_sites_are_those_of_the_driver() -> None:
    assert {name for name, _ in SITES} == {"control.py", "tables.py"}
