"""The chip on the fast engine against Verilator and pysim, in every bit of its state, every cycle."""

import pytest
from chip_pysim import PysimLockstep
from chip_session import MEMORY, needs_verilator, session
from chip_traffic import Traffic

from sley.abi.config import preset
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.engines.options import EngineOptions

needs_compiler = pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")


@needs_verilator
@pytest.mark.parametrize(
    ("name", "sessions", "cycles", "largest", "tied"),
    [
        # Four of its cores are in the square of test_lockstep_quad, and with a reset it is compared with pysim below.
        pytest.param("nano", 10, 30_000, 40, False, marks=pytest.mark.campaign),
        pytest.param("edge", 10, 30_000, 70, True, marks=pytest.mark.slow),
    ],
)
def test_verilator(name: str, sessions: int, cycles: int, largest: int, tied: bool) -> None:
    compared = sum(session(preset(name), cycles, largest, seed, tied) for seed in range(sessions))
    assert compared >= sessions * cycles


@pytest.mark.slow
@needs_compiler
def test_pysim() -> None:
    config, cycles = preset("nano"), 10_000
    chip = PysimLockstep(config, EngineOptions(MEMORY, latency=7))
    assert not chip.fast_only, "registers that pysim has not"
    assert chip.pysim_only == chip.aliases, "registers of pysim that the fast engine cannot compute"
    traffic = Traffic(chip, config, lambda: chip.compared, seed=3)
    traffic.registers(cycles // 10)
    chip.restart(2)
    traffic.work(cycles * 8 // 10, 5)
    traffic.mischief(cycles * 9 // 10)
    chip.restart(1)
    traffic.registers(cycles)
    chip.close()
