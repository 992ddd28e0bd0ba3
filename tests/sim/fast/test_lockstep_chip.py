"""The chip on the fast engine against Verilator and pysim, in every bit of its state, every cycle."""

import random
import re
from dataclasses import replace
from typing import Any

import pytest
from chip_lockstep import LockstepError, LockstepTransport, manifest_of
from chip_pysim import PysimLockstep
from chip_traffic import Traffic

from sley.abi.config import ChipConfig, preset
from sley.abi.registers import RegisterMap
from sley.sim.engines.options import EngineOptions
from sley.sim.toolchain import find_c_compiler, find_compiler, find_verilator

MEMORY = 1 << 20
LATENCIES, GAPS = (1, 7, 32, 200), (0, 1, 9)

CORE = "sley.core0.instance"
ARRAY = f"{CORE}.matrix.array"
LANE = f"{CORE}.vector.lane_"

needs_verilator = pytest.mark.skipif(
    not (find_c_compiler() and find_compiler() and find_verilator()), reason="no compiler or Verilator"
)
needs_compiler = pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")


def run(chip: LockstepTransport, config: ChipConfig, cycles: int, largest: int, seed: int, tied: bool = False) -> None:
    """Work, mischief, a reset in the middle of it if there is one, register accesses, and noise on all inputs."""
    traffic = Traffic(chip, config, lambda: chip.compared, seed)
    traffic.work(cycles * 6 // 10, largest)
    traffic.mischief(cycles * 8 // 10)
    if not tied:
        chip.restart(1 + seed % 3)  # in the middle of something
    traffic.registers(cycles * 9 // 10)
    chip.noise(seed, max(0, cycles - chip.compared), [register.address for register in RegisterMap(config)])


def session(name: str, cycles: int, largest: int, seed: int, tied: bool) -> int:
    """One life of a chip, of about so many cycles; how many were compared."""
    dice = random.Random(seed)
    config = preset(name)
    options = EngineOptions(MEMORY, latency=dice.choice(LATENCIES), burst_gap=dice.choice(GAPS))
    chip = LockstepTransport(config, options, tied)
    coverage = chip.coverage
    assert not coverage.fast_only, "registers that the Verilog has not"
    assert not coverage.verilog_only, "registers that the fast engine has not"
    assert not coverage.partial, "registers of which the fast engine has some bits only"
    run(chip, config, cycles, largest, seed, tied)
    compared = chip.compared
    chip.close()
    return compared


CAMPAIGNS = [
    ("nano", 2, 10_000, 12, False),
    ("nano", 2, 10_000, 12, True),
    pytest.param("nano", 10, 30_000, 40, False, marks=pytest.mark.slow),
    pytest.param("edge", 10, 30_000, 70, True, marks=pytest.mark.slow),
    pytest.param("base", 8, 50_000, 100, False, marks=pytest.mark.slow),
    pytest.param("quad", 3, 35_000, 100, True, marks=pytest.mark.slow),
]


@needs_verilator
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "sessions", "cycles", "largest", "tied"), CAMPAIGNS)
def test_verilator(name: str, sessions: int, cycles: int, largest: int, tied: bool) -> None:
    """``tied``: as the engines compile the chip, which is a simpler netlist in other groups."""
    compared = sum(session(name, cycles, largest, seed, tied) for seed in range(sessions))
    assert compared >= sessions * cycles


def exchanged(items: dict[str, Any], one: str, two: str) -> dict[str, Any]:
    return items | {one: items[two], two: items[one]}


@needs_verilator
@pytest.mark.parametrize(
    ("kind", "one", "two"),
    [
        ("registers", f"{ARRAY}.element_0_0.instance.active", f"{ARRAY}.element_3_1.instance.active"),
        ("registers", f"{LANE}1.instance.multiply.part_10", f"{LANE}2.instance.multiply.part_10"),
        ("memories", f"{CORE}.scratchpad.bank0", f"{CORE}.scratchpad.bank3"),
        ("memories", f"{CORE}.accumulator.bank0", f"{CORE}.accumulator.bank1"),
        ("outputs", "m_axi_arvalid", "m_axi_awvalid"),
    ],
)
def test_a_difference_is_noticed(kind: str, one: str, two: str) -> None:
    """Two places exchanged look like an engine that computes something else."""
    config = preset("nano")
    manifest = manifest_of(config)
    wrong = replace(manifest, **{kind: exchanged(getattr(manifest, kind), one, two)})
    chip = LockstepTransport(config, EngineOptions(MEMORY), manifest=wrong)
    with pytest.raises(LockstepError, match=re.escape(one) + "|" + re.escape(two)):
        run(chip, config, 10_000, 12, seed=0)
    chip.close()


@needs_compiler
@pytest.mark.parametrize("cycles", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_pysim(cycles: int) -> None:
    config = preset("nano")
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
