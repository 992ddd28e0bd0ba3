"""Fixtures of the runtime's tests: on the golden model, and on the compiled gateware where a compiler is."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import DTypeLike

from sley.runtime import Buffer, Device, blas
from sley.sim.engines.options import default_engine

ENGINES = [
    *(f"model:{name}?memory=1M" for name in ("nano", "edge", "quad")),
    *(["fast:nano?memory=1M"] if default_engine() == "fast" else []),
]


@pytest.fixture(params=ENGINES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device that is given up soon when it hangs."""
    with Device.open(request.param, hang_cycles=5_000, watchdog=0) as opened:
        yield opened


@pytest.fixture
def ones(device: Device) -> Callable[..., Buffer]:
    """Makes arrays of ones on the device."""

    def array(*shape: int, dtype: DTypeLike = np.int8) -> Buffer:
        return device.array(np.ones(shape, dtype))

    return array


@pytest.fixture
def usable(device: Device) -> Callable[[], None]:
    """Asserts that the device multiplies correctly."""

    def check() -> None:
        random = np.random.default_rng(7)
        a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((5, 9), (9, 7)))
        c = blas.gemm(device.array(a), device.array(b)).numpy()
        assert np.array_equal(c, a.astype(np.int32) @ b.astype(np.int32))

    return check
