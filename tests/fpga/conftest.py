"""A bridge with something behind it, on the fast engine; and lets tests of this folder import their helpers."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sley.abi.config import ChipConfig, preset
from sley.fpga.bridge import link
from sley.fpga.testing.bridged import BAUD, Bridged
from sley.hw.rtlil import component_rtlil
from sley.sim.board.board import SimulatedBoard
from sley.sim.board.host_uart import HostedDesign
from sley.sim.build.toolchain import find_c_compiler

sys.path.insert(0, str(Path(__file__).parent))

CLOCKS = 4
CONFIGS = {
    "nano": preset("nano"),
    "edge": preset("edge"),
    "wide": preset("nano").replace(array=64, scratchpad_rows=512),
}


@pytest.fixture(params=CONFIGS)
def config(request: pytest.FixtureRequest) -> ChipConfig:
    return CONFIGS[request.param]


@pytest.fixture
def board(config: ChipConfig, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedBoard]:
    """A ``Bridged`` out of reset; to the link a second is what its clock says."""
    if not find_c_compiler():
        pytest.skip("no C compiler")
    opened = SimulatedBoard(component_rtlil(HostedDesign(Bridged(config, CLOCKS), CLOCKS), "board"))
    monkeypatch.setattr(link, "time", SimpleNamespace(monotonic=lambda: opened.cycles / (CLOCKS * BAUD)))
    yield opened
    opened.close()
