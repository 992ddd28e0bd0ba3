"""Random kernels: the interpreter behind every pass against the model, and some of them against the gateware."""

import pytest
from random_tiles import RandomKernel
from tile_agreement import agree

from sley.runtime import Device
from sley.sim.engines.options import default_engine


@pytest.mark.parametrize(
    "first", [0, 40, *(pytest.param(first, marks=pytest.mark.slow) for first in range(80, 520, 40))]
)
def test_on_the_model(base: Device, first: int) -> None:
    for seed in range(first, first + 40):
        kernel = RandomKernel(seed)
        agree(base, kernel.function, kernel.arrays)


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
@pytest.mark.parametrize("chip", ["base", pytest.param("quad", marks=pytest.mark.slow)])
def test_on_the_gateware(chip: str) -> None:
    with Device.open(f"fast:{chip}?memory=4M") as device:
        for seed in range(1000, 1010):
            kernel = RandomKernel(seed)
            agree(device, kernel.function, kernel.arrays)


def test_the_sanitizers_find_nothing() -> None:
    with Device.open("model:base?memory=4M&sanitize=init,race,memory,sync") as device:
        for seed in range(1500, 1540):
            kernel = RandomKernel(seed)
            agree(device, kernel.function, kernel.arrays)


@pytest.mark.campaign
def test_campaign(base: Device) -> None:
    for seed in range(2_000, 12_000):
        kernel = RandomKernel(seed)
        agree(base, kernel.function, kernel.arrays)
