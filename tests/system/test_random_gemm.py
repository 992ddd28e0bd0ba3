"""The whole machine: runtime, driver, rings, gateware. Every product must equal numpy in every bit."""

from collections.abc import Iterator

import numpy as np
import pytest

from sley.runtime import blas
from sley.runtime.device import Device
from sley.sim.engines.options import default_engine
from sley.sim.toolchain import find_compiler, find_verilator

CASES_PER_CHIP = 170
BATCHES = 10
LARGEST = 70

needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
needs_verilator = pytest.mark.skipif(not (find_compiler() and find_verilator()), reason="no C++ compiler or Verilator")


def requantised(sums: np.ndarray, bias: np.ndarray, scale: float, relu: bool) -> np.ndarray:
    values = (sums + bias).astype(np.float32) * np.float32(scale)
    return np.clip(np.rint(np.maximum(values, 0) if relu else values), -128, 127).astype(np.int8)


def check_product(device: Device, random: np.random.Generator, m: int, n: int, k: int) -> None:
    """One product, as int32 or requantised to int8; operands random or all at an extreme."""
    if random.random() < 0.1:
        a, b = (np.full(shape, random.choice([-128, 127]), np.int8) for shape in ((m, k), (k, n)))
    else:
        a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    sums = a.astype(np.int32) @ b.astype(np.int32)
    on_device = device.array(a), device.array(b)
    if random.random() < 0.5:
        result, expected = blas.gemm(*on_device), sums
    else:
        bias = random.integers(-(1 << 20), 1 << 20, n, np.int32)
        scale, relu = float(random.uniform(0.1, 4) / (64 * np.sqrt(k))), bool(random.random() < 0.5)
        result, expected = blas.gemm(*on_device, bias, scale, relu), requantised(sums, bias, scale, relu)
    np.testing.assert_array_equal(result.numpy(), expected, err_msg=f"M={m} N={n} K={k}")


@pytest.fixture(scope="module", params=["nano", "edge", "base", "quad"])
def compiled(request: pytest.FixtureRequest) -> Iterator[Device]:
    with Device.open(f"fast:{request.param}?memory=4M", hang_cycles=20_000) as device:
        yield device


@needs_compiler
@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_shapes_compiled(compiled: Device, batch: int) -> None:
    """170 shapes of 1 to 70 in each dimension on each chip."""
    random = np.random.default_rng(batch)
    for _ in range(CASES_PER_CHIP // BATCHES):
        check_product(compiled, random, *(int(x) for x in random.integers(1, LARGEST + 1, 3)))


@needs_compiler
@pytest.mark.parametrize("memory", ["latency=1&burst_gap=0", "latency=7&burst_gap=3", "latency=200&burst_gap=1"])
def test_memory_timing_changes_no_result(memory: str) -> None:
    random = np.random.default_rng(5)
    with Device.open(f"fast:nano?memory=4M&{memory}", hang_cycles=20_000) as device:
        for _ in range(10):
            check_product(device, random, *(int(x) for x in random.integers(1, LARGEST + 1, 3)))


def timed_products(device: Device, count: int, largest: int = 11) -> list[tuple[bytes, int]]:
    """Results and the chip's time after each of ``count`` small products."""
    random = np.random.default_rng(9)
    seen = []
    for _ in range(count):
        m, n, k = (int(x) for x in random.integers(1, largest + 1, 3))
        a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
        product = blas.gemm(device.array(a), device.array(b))
        event = device.stream.record()
        result = product.numpy()
        np.testing.assert_array_equal(result, a.astype(np.int32) @ b.astype(np.int32))
        seen.append((result.tobytes(), event.time))
    return seen


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_pysim(count: int) -> None:
    """Small products on the engine that needs nothing but pip, cycle by cycle as the compiled one."""
    with Device.open("pysim:nano?memory=1M", hang_cycles=20_000) as device:
        interpreted = timed_products(device, count)
    if default_engine() == "fast":
        with Device.open("fast:nano?memory=1M", hang_cycles=20_000) as device:
            assert timed_products(device, count) == interpreted


@needs_verilator
@pytest.mark.parametrize(
    "name", ["nano", *(pytest.param(name, marks=pytest.mark.slow) for name in ("edge", "base", "quad"))]
)
def test_verilator(name: str) -> None:
    """Products on both compiled engines take the same cycles, doorbell by doorbell."""
    seen = []
    for engine in ("fast", "rtl"):
        with Device.open(f"{engine}:{name}?memory=4M", hang_cycles=20_000) as device:
            seen.append(timed_products(device, 40, LARGEST))
    assert seen[0] == seen[1]
