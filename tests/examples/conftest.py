"""Devices on which the examples run: the golden model, and the compiled gateware where a compiler is."""

from collections.abc import Iterator

import pytest

from sley.runtime import Device
from sley.sim.engines.options import default_engine

ENGINES = [
    "model:nano?memory=1M",
    "model:quad?memory=1M",
    *(["fast:nano?memory=1M"] if default_engine() == "fast" else []),
]


@pytest.fixture(params=ENGINES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device that is given up soon when it hangs."""
    with Device.open(request.param, hang_cycles=5_000, watchdog=0) as opened:
        yield opened
