"""The chip on the fast engine against Verilator and pysim, in every bit of its state, every cycle."""

import re
from dataclasses import replace
from typing import Any

import pytest
from chip_lockstep import LockstepError, LockstepTransport, manifest_of
from chip_pysim import PysimLockstep
from chip_session import MEMORY, needs_verilator, run, session
from chip_traffic import Traffic

from sley.abi.config import preset
from sley.sim.build.toolchain import find_c_compiler
from sley.sim.engines.options import EngineOptions
from sley.sim.memory.dram import DramTiming

EDGE = preset("edge")
CORE = "sley.core0"
ARRAY = f"{CORE}.matrix.array"
LANE = f"{CORE}.vector.lane_"

needs_compiler = pytest.mark.skipif(not find_c_compiler(), reason="no C compiler")


@needs_verilator
@pytest.mark.parametrize(
    ("name", "sessions", "cycles", "largest", "tied"),
    [
        # Four of its cores are in the square of test_lockstep_quad, and with a reset it is compared with pysim below.
        pytest.param("nano", 10, 30_000, 40, False, marks=pytest.mark.campaign),
        pytest.param("edge", 3, 30_000, 70, True, marks=pytest.mark.slow),
        pytest.param("edge", 20, 30_000, 70, True, marks=pytest.mark.campaign),
    ],
)
def test_verilator(name: str, sessions: int, cycles: int, largest: int, tied: bool) -> None:
    compared = sum(session(preset(name), cycles, largest, seed, tied) for seed in range(sessions))
    assert compared >= sessions * cycles


def exchanged(items: dict[str, Any], one: str, two: str) -> dict[str, Any]:
    return items | {one: items[two], two: items[one]}


@needs_verilator
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "one", "two"),
    [
        ("registers", f"{ARRAY}.element_0_0.active", f"{ARRAY}.element_3_1.active"),
        ("registers", f"{LANE}1.multiply.part_10", f"{LANE}2.multiply.part_10"),
        ("memories", f"{CORE}.scratchpad.bank0", f"{CORE}.scratchpad.bank3"),
        ("memories", f"{CORE}.accumulator.bank0", f"{CORE}.accumulator.bank1"),
        ("outputs", "m_axi_arvalid", "m_axi_awvalid"),
    ],
)
def test_a_difference_is_noticed(kind: str, one: str, two: str) -> None:
    """Two places exchanged look like an engine that computes something else."""
    manifest = manifest_of(EDGE, tied=True)
    wrong = replace(manifest, **{kind: exchanged(getattr(manifest, kind), one, two)})
    chip = LockstepTransport(EDGE, EngineOptions(MEMORY), tied=True, manifest=wrong)
    with pytest.raises(LockstepError, match=re.escape(one) + "|" + re.escape(two)):
        run(chip, EDGE, 10_000, 12, seed=0, tied=True)
    chip.close()


@pytest.mark.slow
@needs_compiler
def test_pysim() -> None:
    config, cycles = preset("nano"), 10_000
    chip = PysimLockstep(config, EngineOptions(MEMORY, DramTiming(latency=7)))
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
