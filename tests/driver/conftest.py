"""Fixtures of the driver's tests. SLEY_TEST_ENGINES, a list of engine URLs, runs them on other engines."""

import os
from collections.abc import Iterator

import pytest

from sley.driver.device import Driver

ENGINES = os.environ.get("SLEY_TEST_ENGINES", "model:nano?memory=1M").split(",")


@pytest.fixture(params=ENGINES)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    """A device with short rings, which is given up soon when it hangs."""
    with Driver.open(request.param, log2_ring=2, hang_cycles=5_000) as opened:
        yield opened
