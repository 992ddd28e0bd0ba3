"""Chips for tests of their Verilog."""

import pytest
from small_chain_chip import SMALL

from sley.abi.config import ChipConfig, preset

SQUARE = preset("nano").replace(name="square", cores_x=2, cores_y=2)
"""Mesh and gangs of ``quad`` around smaller cores; those of ``quad`` are those of ``base``."""


@pytest.fixture(
    params=[
        preset("nano"),
        *(pytest.param(config, marks=pytest.mark.slow) for config in (SMALL, SQUARE)),
        *(pytest.param(preset(name), marks=pytest.mark.campaign) for name in ("edge", "base", "quad")),
    ],
    ids=lambda config: config.name,
)
def linted(request: pytest.FixtureRequest) -> ChipConfig:
    """A chip whose Verilog must be clean under lint."""
    config: ChipConfig = request.param
    return config
