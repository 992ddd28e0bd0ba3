"""Random kernels: the interpreter behind every pass against the model, and some of them against the gateware."""

from collections import Counter
from pathlib import Path

import pytest
from random_tiles import RandomKernel
from tile_agreement import agree
from tile_chips import random_chip

from sley.runtime import Device, tile
from sley.sim.engines.options import default_engine

slow = pytest.mark.slow


@pytest.mark.some(1)
@pytest.mark.parametrize("first", [0, 40, *(pytest.param(first, marks=slow) for first in range(80, 480, 40))])
def test_on_the_model(base: Device, first: int) -> None:
    for seed in range(first, first + 40):
        kernel = RandomKernel(seed)
        agree(base, kernel.function, kernel.arrays)


@pytest.mark.parametrize(
    "first",
    [
        *(pytest.param(first, marks=slow) for first in (0, 4)),
        *(pytest.param(first, marks=pytest.mark.campaign) for first in range(8, 24, 4)),
    ],
)
def test_on_random_chips(tmp_path: Path, first: int) -> None:
    """What does not fit is refused; most fits."""
    seen = Counter[str]()
    for number in range(first, first + 4):
        chip = random_chip(number)
        path = tmp_path / f"{chip.name}.json"
        path.write_text(chip.to_json())
        with Device.open(f"model:{path}?memory=4M") as device:
            for seed in range(3000 + number * 8, 3008 + number * 8):
                kernel = RandomKernel(seed, chip)
                try:
                    agree(device, kernel.function, kernel.arrays)
                except tile.RoomError:
                    seen["refused"] += 1
                else:
                    seen["equal"] += 1
    assert seen["equal"] >= 4 * seen["refused"], seen


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
@pytest.mark.parametrize("chip", ["base", pytest.param("quad", marks=slow)])
def test_on_the_gateware(chip: str) -> None:
    with Device.open(f"fast:{chip}?memory=4M") as device:
        for seed in range(1000, 1020):
            kernel = RandomKernel(seed)
            agree(device, kernel.function, kernel.arrays)


@pytest.mark.slow
def test_the_sanitizers_find_nothing() -> None:
    with Device.open("model:base?memory=4M&sanitize=init,race,memory,sync") as device:
        for seed in range(1500, 1540):
            kernel = RandomKernel(seed)
            agree(device, kernel.function, kernel.arrays)


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(4_000, 104_000, 2_000))
def test_campaign(first: int) -> None:
    """A device of its own for each part: programs stay in its memory."""
    with Device.open("model:base?memory=16M") as device:
        for seed in range(first, first + 2_000):
            kernel = RandomKernel(seed)
            agree(device, kernel.function, kernel.arrays)
