"""Fixtures of the operators' tests on the golden model: many chips, for what runs on all; chips with chains."""

from collections.abc import Iterator

import pytest
from gemm_chips import chips

from sley.abi.config import ChipConfig
from sley.driver import Driver
from sley.runtime import Device
from sley.sim.engines.model import ModelTransport


@pytest.fixture(params=chips())
def config(request: pytest.FixtureRequest) -> ChipConfig:
    return request.param


@pytest.fixture
def device(config: ChipConfig) -> Iterator[Device]:
    with Device(Driver(ModelTransport(config, 1 << 22), hang_cycles=20_000)) as opened:
        yield opened


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=16M") as opened:
        yield opened


@pytest.fixture(scope="module")
def quad() -> Iterator[Device]:
    with Device.open("model:quad?memory=16M") as opened:
        yield opened
