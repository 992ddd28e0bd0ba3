"""Soak: eight contexts at work beside each other, with faults and resets at random times.

Everything follows from a seed. The test keeps a mirror of what memory must hold, and a journal for each queue of what
every packet does to it; when the driver says how far a queue came, the mirror follows. A packet that a reset may have
caught half-way makes what it writes unknown, until the test writes it anew; nothing else may differ from the mirror.

Replay: a failure names the command that runs its seed again, such as
``SLEY_SOAK_SEED=17 SLEY_SOAK_COUNT=10000 pytest "tests/system/test_soak.py::test_short_soak[ordered]"``.
"""

import os
import random
from collections import Counter

import numpy as np
import pytest
from soak_faults import bad_doorbell, fault, remap, reset, reset_device
from soak_session import Session
from soak_work import copy, fence, fill, hand_over, launch, nop

from sley.abi.faults import FaultCode
from sley.abi.pages import PAGE_BYTES
from sley.driver.device import Driver
from sley.sim.engines.options import default_engine
from sley.sim.engines.posted import PostedWrites
from sley.sim.testing.watched_transport import SMALL, WatchedTransport

pytestmark = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")

TEST = ["tests/system/test_soak.py::test_short_soak[ordered]", "tests/system/test_soak.py::test_short_soak[posted]"]
SEED, COUNT = int(os.environ.get("SLEY_SOAK_SEED", "1")), int(os.environ.get("SLEY_SOAK_COUNT", "800"))
GUARD_BYTES = 32 * PAGE_BYTES
"""Memory that belongs to nobody: the watch sees every access to it."""

NOT_PROVOKED = {
    FaultCode.NONE,
    FaultCode.ABORTED,  # the driver's own doing
}

ACTIONS = {
    **{launch: 12, copy: 8, fill: 6, fence: 8, hand_over: 8, nop: 2},
    **{fault: 4, Session.verify: 2, reset: 1, bad_doorbell: 1, remap: 1, reset_device: 0.1},
}
"""How often each is done."""

IN_BATCH = [launch, copy, fill, nop, fence]


def run(session: Session) -> None:
    """Random actions, until the session has submitted what it shall."""
    dice = session.dice
    while session.submitted < session.count:
        line = dice.choice(session.lines)
        if dice.random() < 0.15:
            with line.queue.batch():
                for _ in range(dice.randrange(2, 6)):
                    dice.choice(IN_BATCH)(session, line)
        else:
            (action,) = dice.choices(list(ACTIONS), list(ACTIONS.values()))
            action(session, line)
        if dice.random() < 0.3:
            session.driver.transport.advance(dice.randrange(1, 800))
        if dice.random() < 0.3:
            session.driver.service()


def soak(seed: int, count: int, most: int = 600, posted: bool = False) -> Counter[str]:
    """At least ``count`` submissions on one device, in sessions of ``most`` with contexts of their own; on a bus that
    posts writes, or one that does not."""
    tally: Counter[str] = Counter()
    transport = WatchedTransport(SMALL)
    try:
        bus = PostedWrites(transport, seed) if posted else transport
        driver = Driver(bus, hang_cycles=60_000)
        (guard,) = driver.pages.allocate(GUARD_BYTES, 1 << 40)
        first = guard.address // PAGE_BYTES
        transport.forbid(range(first, first + GUARD_BYTES // PAGE_BYTES), beyond=False)
        before = driver.pages.statistics().used, driver.free_queues
        dice = random.Random(seed)
        while tally["submitted"] < count:
            part = Session(driver, dice.getrandbits(32), min(most, count - tally["submitted"]))
            run(part)
            part.finish()
            tally += part.tally
            tally["submitted"] += part.submitted
            assert (driver.pages.statistics().used, driver.free_queues) == before
            assert not driver.contexts
            assert not driver.buffers
            assert not driver.handles
    except BaseException as error:
        error.add_note(f"replay: SLEY_SOAK_SEED={seed} SLEY_SOAK_COUNT={count} pytest {TEST[posted]}")
        raise
    finally:
        transport.close()
    return tally


@pytest.mark.parametrize("posted", [False, True], ids=["ordered", "posted"])
def test_short_soak(posted: bool) -> None:
    tally = soak(SEED, COUNT, posted=posted)
    assert sum(count for name, count in tally.items() if name.startswith("fault")) > COUNT // 30


@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_bit_is_found(seed: int) -> None:
    """Wherever it is: in data, in a semaphore, in the place of a fence."""
    transport = WatchedTransport(SMALL)
    part = Session(Driver(transport, hang_cycles=60_000), seed, 50)
    run(part)
    client = part.dice.choice(part.clients)
    areas = (client.area, client.constant_area, client.fence_area, part.shared)
    for other in part.clients:
        part.drain(other)
    area = areas[seed]
    (place, *_) = np.flatnonzero(area.known)[part.dice.randrange(100) :]
    area.buffer.write(int(place), bytes([area.data[place] ^ 1]))
    with pytest.raises(AssertionError, match="1 bytes differ"):
        part.finish()
    transport.close()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEED + 1, SEED + 4))
def test_long_soak(seed: int) -> None:
    tally = soak(seed, 10_000)
    faults = {name.split()[1] for name in tally if name.startswith("fault")}
    assert faults == {code.name for code in FaultCode if code not in NOT_PROVOKED}
