"""Chips of four cores on the fast engine against Verilator, in every bit of their state, every cycle."""

import pytest
from chip_session import needs_verilator, session

from sley.abi.config import preset

SQUARE = preset("nano").replace(name="square", cores_x=2, cores_y=2)
"""Mesh, gangs and memory port of ``quad`` around cores that compile in a tenth of the time."""


@needs_verilator
@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_square(seed: int) -> None:
    assert session(SQUARE, 35_000, 40, seed, tied=True) >= 35_000


@needs_verilator
@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_verilator(seed: int) -> None:
    assert session(preset("quad"), 35_000, 100, seed, tied=True) >= 35_000
