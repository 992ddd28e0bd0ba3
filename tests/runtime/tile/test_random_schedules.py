"""Random kernels with random schedules that their loops allow: the interpreter behind every pass, the checker, and the
model; some of them on the gateware."""

import random
import re
from collections import Counter
from collections.abc import Iterable
from itertools import product

import pytest
from random_loops import RandomLoops, drawn_schedule
from random_tiles import RandomKernel
from tile_agreement import agree

from sley.runtime import Device
from sley.runtime.errors import KernelError
from sley.sim.engines.options import default_engine

slow = pytest.mark.slow
ON_THE_MODEL = "model:base?memory=4M"
WORDS = ("split", "fuse", "privatise", "unroll")
TOO_MUCH = re.compile(r"semaphores|rows of the (accumulators|scratchpad)|instructions; a core holds")
REFUSED = re.compile(rf"(line \d+: )?({'|'.join(WORDS)}) of \w+")


def agreements(kernels: Iterable[RandomLoops | RandomKernel], engine: str = ON_THE_MODEL) -> Counter[str]:
    """How many were equal, with how many words; and how many were too much for the chip. A device keeps programs, so it
    is one of their own."""
    seen = Counter[str]()
    with Device.open(engine) as device:
        for kernel, number in product(kernels, range(2)):
            dice = random.Random(2 * kernel.seed + number)
            schedule, refused = drawn_schedule(dice, kernel.function)
            assert all(REFUSED.match(message) for message in refused)
            try:
                agree(device, kernel.function, kernel.arrays, schedule)
            except KernelError as error:
                if not TOO_MUCH.search(str(error)):
                    raise
                seen["too much"] += 1
            else:
                seen["equal"] += 1
                seen["refused"] += len(refused)
                seen.update(word for word in WORDS if getattr(schedule, word))
    return seen


@pytest.mark.some(1)
@pytest.mark.parametrize("first", range(0, 300, 25))
def test_on_the_model(first: int) -> None:
    seen = agreements(RandomLoops(seed) for seed in range(first, first + 25))
    assert seen["equal"] >= 10 * seen["too much"]
    assert all(seen[word] >= 5 for word in (*WORDS, "refused")), seen


@slow
def test_kernels_with_one_loop() -> None:
    seen = agreements(kernel for kernel in map(RandomKernel, range(600, 680)) if kernel.rounds)
    assert seen["equal"] >= 10 * seen["too much"]
    assert seen["split"] * seen["unroll"] > 0


@slow
def test_the_sanitizers_find_nothing() -> None:
    agreements((RandomLoops(seed) for seed in range(1000, 1020)), f"{ON_THE_MODEL}&sanitize=init,race,memory,sync")


@slow
@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
def test_on_the_gateware() -> None:
    agreements((RandomLoops(seed) for seed in range(2000, 2010)), "fast:base?memory=4M")


@pytest.mark.campaign
def test_campaign() -> None:
    for first in range(4_000, 6_000, 50):
        agreements(RandomLoops(seed) for seed in range(first, first + 50))
