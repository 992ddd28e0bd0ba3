"""Random chips of twins beside their gateware: random products, transfers, lists, programs and faults."""

from collections.abc import Callable
from pathlib import Path

import pytest
from paired_work import lists, moves, opened, products, programs, resets
from random_chips import random_chip, random_memory

from sley.driver.device import Driver
from sley.runtime import Device
from sley.sim.engines.options import default_engine

SLOW, CAMPAIGN = (15, 22, 36), (1, 2, 4, 8, 14, 16, 25, 29, 31, 35, 39)


@pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in SLOW),
        *(pytest.param(seed, marks=pytest.mark.campaign) for seed in CAMPAIGN),
    ],
)
def test_random_chip(seed: int, tmp_path: Path, check: Callable[..., None]) -> None:
    config = random_chip(seed)
    path = tmp_path / "chip.json"
    path.write_text(config.to_json())
    for part in range(2):
        with Driver(opened(str(path), **random_memory(2 * seed + part)), hang_cycles=50_000) as driver:
            moves(driver, 5, seed)
            resets(driver, 5, seed)
            programs(driver, 40, 2 * seed + part)
        with Driver(opened(str(path), **random_memory(2 * seed + part)), hang_cycles=50_000) as driver:
            device = Device(driver)
            products(device, check, 10, 2 * seed + part)
            if config.gather:
                lists(device, 5, seed)
