"""The chip ``base`` on the fast engine against Verilator, in every bit of its state, every cycle."""

import pytest
from chip_session import needs_verilator, session

from sley.abi.config import preset


@needs_verilator
@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(5))
def test_verilator(seed: int) -> None:
    assert session(preset("base"), 50_000, 100, seed, tied=False) >= 50_000
