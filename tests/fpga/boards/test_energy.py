"""Energy on a board: its counters have the activity that the exact model has."""

from types import SimpleNamespace

import numpy as np
import pytest

from sley.driver import Driver
from sley.fpga.boards.simulated import BAUD
from sley.fpga.bridge import link
from sley.fpga.bridge.transport import FpgaTransport
from sley.runtime import Device, blas
from sley.runtime.energy.activity import activities
from sley.runtime.energy.estimate import Energy, estimate
from sley.sim.board.design import open_board
from sley.sim.board.port import BoardPort
from sley.sim.build.toolchain import find_c_compiler

CLOCKS = 4


def energy_of(device: Device) -> tuple[Energy, dict[str, float]]:
    """Of a product, and what was counted, by name."""
    random = np.random.default_rng(0)
    a, b = (device.array(random.integers(-9, 9, shape).astype(np.int8)) for shape in ((9, 13), (13, 7)))
    blas.gemm(a, b)  # its program is on the device behind it
    with device.stream.counted() as count:
        blas.gemm(a, b)
    found = {f"{one.unit} {one.work}": one.amount for one in activities(count.counters, device.config)}
    return estimate(count.counters, device.config), found


@pytest.mark.slow
@pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")
def test_a_board_spends_what_the_model_spends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters are read by the serial line, which is at work around the product, but not in it."""
    board = open_board(None, CLOCKS, 1 << 17)
    monkeypatch.setattr(link, "time", SimpleNamespace(monotonic=lambda: board.cycles / (CLOCKS * BAUD)))
    try:
        with Driver(FpgaTransport(BoardPort(board), BAUD)) as driver:
            there, counted = energy_of(Device(driver))
    finally:
        board.close()
    with Device.open("model:nano?cycles=on&memory=128K") as device:
        here, modelled = energy_of(device)
    assert counted == modelled
    assert there.joules == pytest.approx(here.joules)
    assert there.joules > 0
