"""Chips of four cores on the fast engine against Verilator, in every bit of their state, every cycle."""

import re
from dataclasses import replace
from typing import Any

import pytest
from chip_lockstep import LockstepError, LockstepTransport, manifest_of
from chip_session import MEMORY, needs_verilator, run, session

from sley.abi.config import preset
from sley.sim.engines.options import EngineOptions

SQUARE = preset("nano").replace(name="square", cores_x=2, cores_y=2)
"""Mesh, gangs and memory port of ``quad`` around cores that compile in a tenth of the time."""

CORE = "sley.core0.instance"
ARRAY = f"{CORE}.matrix.array"
LANE = f"{CORE}.vector.lane_"


@needs_verilator
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_square(seed: int) -> None:
    assert session(SQUARE, 35_000, 40, seed, tied=True) >= 35_000


def exchanged(items: dict[str, Any], one: str, two: str) -> dict[str, Any]:
    return items | {one: items[two], two: items[one]}


@needs_verilator
@pytest.mark.slow
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
    manifest = manifest_of(SQUARE, tied=True)
    wrong = replace(manifest, **{kind: exchanged(getattr(manifest, kind), one, two)})
    chip = LockstepTransport(SQUARE, EngineOptions(MEMORY), tied=True, manifest=wrong)
    with pytest.raises(LockstepError, match=re.escape(one) + "|" + re.escape(two)):
        run(chip, SQUARE, 10_000, 12, seed=0, tied=True)
    chip.close()


@needs_verilator
@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_verilator(seed: int) -> None:
    assert session(preset("quad"), 35_000, 100, seed, tied=True) >= 35_000
