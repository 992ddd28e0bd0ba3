"""Fixtures of the driver's tests: on the golden model, and on the compiled gateware where a compiler is."""

from collections.abc import Iterator

import pytest

from sley.driver.device import Driver
from sley.sim.engines.options import default_engine

ENGINES = ["model:nano?memory=1M", *(["fast:nano?memory=1M"] if default_engine() == "fast" else [])]


@pytest.fixture(params=ENGINES)
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    """A device with short rings, which is given up soon when it hangs."""
    with Driver.open(request.param, log2_ring=2, hang_cycles=5_000) as opened:
        yield opened
