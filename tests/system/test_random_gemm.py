"""The whole machine: runtime, driver, rings, gateware. Every product must equal the golden one in every bit."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from sley.abi.config import ChipConfig
from sley.runtime.device.device import Device
from sley.sim.build.toolchain import find_compiler, find_verilator
from sley.sim.engines.options import default_engine
from sley.sim.testing.product import Product, random_product

CASES_PER_CHIP = 600
BATCHES = 10
# Most are small: their edges are everywhere, and none takes longer than making its program.
LARGEST = {"nano": 26, "edge": 40, "base": 60, "quad": 60}
STRIDED = 0.4
"""Share of the cases whose arrays are views of larger ones."""

Check = Callable[..., None]

needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
needs_verilator = pytest.mark.skipif(not (find_compiler() and find_verilator()), reason="no C++ compiler or Verilator")


def random_case(config: ChipConfig, rng: np.random.Generator, largest: int) -> Product:
    """Sizes spread over magnitudes."""
    m, n, k = (int(x) for x in np.exp(rng.uniform(0, np.log(largest + 1), 3)))
    return random_product(config, rng, (m, n, k))


@pytest.fixture(
    scope="module",
    params=["nano", *(pytest.param(name, marks=pytest.mark.slow) for name in ("edge", "base", "quad"))],
)
def compiled(request: pytest.FixtureRequest) -> Iterator[Device]:
    with Device.open(f"fast:{request.param}?memory=4M", hang_cycles=20_000) as device:
        yield device


@needs_compiler
@pytest.mark.long
@pytest.mark.parametrize("batch", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, BATCHES))])
def test_random_products_compiled(compiled: Device, check: Check, batch: int) -> None:
    """600 products on each chip: all types, layouts, batches and epilogues that it has; some of views."""
    rng, config = np.random.default_rng(batch), compiled.config
    for _ in range(CASES_PER_CHIP // BATCHES):
        case = random_case(config, rng, LARGEST[config.name])
        check(compiled, case, rng if rng.random() < STRIDED else None)


@needs_compiler
@pytest.mark.parametrize("memory", ["latency=1&burst_gap=0", "latency=7&burst_gap=3", "latency=200&burst_gap=1"])
@pytest.mark.parametrize("name", ["nano", pytest.param("edge", marks=pytest.mark.slow)])
def test_memory_timing_changes_no_result(check: Check, name: str, memory: str) -> None:
    rng = np.random.default_rng(5)
    with Device.open(f"fast:{name}?memory=4M&{memory}", hang_cycles=20_000) as device:
        for number in range(10):
            check(device, random_case(device.config, rng, 70), rng if number % 2 else None)


def timed_products(device: Device, check: Check, count: int, largest: int = 11) -> list[int]:
    """The chip's time after each of ``count`` small products."""
    rng, times = np.random.default_rng(9), []
    for _ in range(count):
        sizes = [int(x) for x in rng.integers(1, largest + 1, 3)]
        check(device, random_product(device.config, rng, (sizes[0], sizes[1], sizes[2])))
        times.append(device.stream.record().time)
    return times


@pytest.mark.parametrize(
    "count", [pytest.param(1, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.campaign)]
)
def test_pysim(check: Check, count: int) -> None:
    """Small products on the engine that needs nothing but pip, cycle by cycle as the compiled one."""
    with Device.open("pysim:nano?memory=1M", hang_cycles=20_000) as device:
        interpreted = timed_products(device, check, count)
    if default_engine() == "fast":
        with Device.open("fast:nano?memory=1M", hang_cycles=20_000) as device:
            assert timed_products(device, check, count) == interpreted


@needs_verilator
@pytest.mark.campaign  # the lock-step tests compare the gateware in every bit; what is left is how wide the bus is
@pytest.mark.parametrize("name", ["nano", "edge", "base"])
def test_verilator(check: Check, name: str) -> None:
    """Products on both compiled engines take the same cycles, doorbell by doorbell."""
    seen = []
    for engine in ("fast", "rtl"):
        with Device.open(f"{engine}:{name}?memory=4M", hang_cycles=20_000) as device:
            seen.append(timed_products(device, check, 40, 70))
    assert seen[0] == seen[1]
