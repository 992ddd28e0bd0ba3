"""Fixtures of the runtime's tests. SLEY_TEST_ENGINES, a list of engine URLs, runs them on other engines."""

import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from sley.runtime import blas
from sley.runtime.device import Device

ENGINES = os.environ.get("SLEY_TEST_ENGINES", "model:nano?memory=1M,model:edge?memory=1M,model:quad?memory=1M").split(
    ","
)


@pytest.fixture(params=ENGINES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device that is given up soon when it hangs."""
    with Device.open(request.param, hang_cycles=5_000) as opened:
        yield opened


@pytest.fixture
def usable(device: Device) -> Callable[[], None]:
    """Asserts that the device multiplies correctly."""

    def check() -> None:
        random = np.random.default_rng(7)
        a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((5, 9), (9, 7)))
        c = blas.gemm(device.array(a), device.array(b)).numpy()
        assert np.array_equal(c, a.astype(np.int32) @ b.astype(np.int32))

    return check
