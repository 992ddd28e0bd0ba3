"""One life of a chip in lock-step with Verilator."""

import random

import pytest
from chip_lockstep import LockstepTransport
from chip_traffic import Traffic

from sley.abi.config import ChipConfig
from sley.abi.registers import RegisterMap
from sley.sim.build.toolchain import find_c_compiler, find_compiler, find_verilator
from sley.sim.engines.options import EngineOptions
from sley.sim.memory.dram import DramTiming

MEMORY = 1 << 20
LATENCIES, GAPS = (1, 7, 32, 200), (0, 1, 9)

needs_verilator = pytest.mark.skipif(
    not (find_c_compiler() and find_compiler() and find_verilator()), reason="no compiler or Verilator"
)


def run(chip: LockstepTransport, config: ChipConfig, cycles: int, largest: int, seed: int, tied: bool = False) -> None:
    """Work, mischief, a reset in the middle of it if there is one, register accesses, and noise on all inputs."""
    traffic = Traffic(chip, config, lambda: chip.compared, seed)
    traffic.work(cycles * 6 // 10, largest)
    traffic.mischief(cycles * 8 // 10)
    if not tied:
        chip.restart(1 + seed % 3)  # in the middle of something
    traffic.registers(cycles * 9 // 10)
    chip.noise(seed, max(0, cycles - chip.compared), [register.address for register in RegisterMap(config)])


def session(config: ChipConfig, cycles: int, largest: int, seed: int, tied: bool) -> int:
    """One life of about so many cycles; how many were compared. ``tied``: as the engines compile the chip, which is a
    simpler netlist in other groups."""
    dice = random.Random(seed)
    options = EngineOptions(MEMORY, DramTiming(dice.choice(LATENCIES), dice.choice(GAPS)))
    chip = LockstepTransport(config, options, tied)
    coverage = chip.coverage
    assert not coverage.fast_only, "registers that the Verilog has not"
    assert not coverage.verilog_only, "registers that the fast engine has not"
    assert not coverage.partial, "registers of which the fast engine has some bits only"
    run(chip, config, cycles, largest, seed, tied)
    compared = chip.compared
    chip.close()
    return compared
