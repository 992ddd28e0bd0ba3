"""Designs sampled from a space have the order, and every cycle and counter, that the RTL gives them."""

from pathlib import Path

import pytest
from space_of_products import product
from test_cost import network

from sley.abi.config import ChipConfig
from sley.explore import Space
from sley.explore.costs.cost import cost_of, measured
from sley.explore.costs.workload import workload_of
from sley.explore.search.listed import sampled
from sley.explore.space.space import Design
from sley.runtime import Device

SPACE = Space(
    ChipConfig(name="chip", operand_types=("int8", "bf16"), vector_chains=4, unit_queue=2, queues=1, contexts=2),
    {
        "scratchpad_rows": (64, 512),
        "latency": tuple(range(1, 200)),
        "burst_gap": (0, 1, 4, 16),
        "bandwidth": (0, 2, 4),
        "banks": (0, 4),
        "precision": ("medium", "high"),
    },
    (workload_of(product), workload_of(network())),
)


def on_rtl(design: Design, folder: Path) -> list[int]:
    """Cycles of each workload on engine ``fast``, whose counters are those of the model too."""
    path = folder / "chip.json"
    path.write_text(design.config.to_json())
    options = "".join(f"&{name}={value}" for name, value in design.timing.items())
    found = []
    for workload in SPACE.workloads:
        with Device.open(f"fast:{path}?memory=1G{options}") as device:
            cost = measured(device, workload, design.schedule_of(workload))
        model = cost_of(workload, design.config, design.schedule_of(workload), design.timing)
        assert (model.cycles, model.counters.cores, model.counters.chip) == (
            cost.cycles,
            cost.counters.cores,
            cost.counters.chip,
        )
        found.append(cost.cycles)
    return found


def check(count: int, folder: Path) -> None:
    """Of so many designs that are drawn."""
    designs = [SPACE.design(point) for point in sampled(SPACE, count, 1)]
    model = [sum(cost_of(w, d.config, d.schedule_of(w), d.timing).cycles for w in SPACE.workloads) for d in designs]
    rtl = [sum(on_rtl(design, folder)) for design in designs]
    assert model == rtl
    assert len(set(model)) == count, "designs are told apart"
    print(f"{count} designs, {min(rtl):,} to {max(rtl):,} cycles, order and cycles those of the RTL")


@pytest.mark.slow
def test_three_designs_rank_as_on_the_rtl(tmp_path: Path) -> None:
    check(3, tmp_path)


@pytest.mark.campaign
def test_twenty_designs_rank_as_on_the_rtl(tmp_path: Path) -> None:
    check(20, tmp_path)
