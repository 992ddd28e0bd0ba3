"""Costs: those of the RTL, found again by content, of whatever is a network."""

from pathlib import Path

import numpy as np
import pytest
from space_of_products import product

from sley.abi.config import ChipConfig
from sley.driver import BadRequest, SleyError
from sley.explore import Cost, cost
from sley.explore.costs import cost as costs
from sley.explore.costs.cost import cost_of
from sley.explore.costs.workload import NetworkWorkload, workload_of
from sley.explore.space.file import read_space
from sley.runtime import Device
from sley.runtime.energy.estimate import estimate
from sley.runtime.networks.file import save_network
from sley.runtime.networks.graph import Network, Node, TensorType

FLOAT = np.dtype(np.float32)
SCHEDULES = Path(__file__).parents[2] / "examples" / "spaces" / "schedules.py"
WIDE = ChipConfig(array=64, operand_types=("int8", "bf16"), vector_lanes=64, accumulator_rows=256)


def network(name: str = "layer", value: float = 0.5) -> Network:
    """8 x 16 by 16 x 8 of float32, and ReLU."""
    nodes = [Node("MatMul", ("x", "w"), ("y",)), Node("Relu", ("y",), ("z",))]
    ends = {"x": TensorType(FLOAT, (8, 16))}, {"z": TensorType(FLOAT, (8, 8))}
    return Network(name, *ends, nodes, {"w": np.full((16, 8), value, np.float32)})


def test_a_cost_is_that_of_the_rtl() -> None:
    """Cycles, and every counter."""
    found = cost(product, "nano")
    with Device.open("fast:nano?memory=1G") as device:
        assert costs.measured(device, workload_of(product), {}) == found
    assert found.macs >= 64 * 16 * 32
    assert found.bytes >= 64 * 16 + 16 * 32 + 4 * 64 * 32
    assert found.energy == estimate(found.counters, found.config)
    assert found.energy.joules > 0


@pytest.mark.slow
def test_a_network_costs_what_it_costs_on_the_rtl() -> None:
    found = cost(network(), "base", schedule={"precision": "medium"}, timing={"latency": 50})
    with Device.open("fast:base?memory=1G&latency=50") as device:
        rtl = costs.measured(device, workload_of(network()), {"precision": "medium"})
    assert (rtl.cycles, rtl.counters.cores, rtl.counters.chip) == (
        found.cycles,
        found.counters.cores,
        found.counters.chip,
    )


def test_a_schedule_is_swept_and_costs_what_it_costs_on_the_rtl() -> None:
    """A kernel of tiles, whose source is the file of the space."""
    space, _ = read_space(SCHEDULES)
    (workload,) = space.workloads
    point = {"scratchpad_rows": 4096, "rows": 64, "depth": 64}
    designs = [space.design({**point, "buffer": buffer}) for buffer in (1, 4)]
    found = [cost_of(workload, design.config, design.schedule_of(workload), {}) for design in designs]
    assert found[0].cycles > 1.5 * found[1].cycles
    with Device.open("fast:base?memory=1G") as device:
        rtl = costs.measured(device, workload, designs[1].schedule_of(workload))
    assert (rtl.cycles, rtl.counters.chip) == (found[1].cycles, found[1].counters.chip)


def test_timing_and_chip_matter() -> None:
    near, far = cost(product, "nano", timing={"latency": 4}), cost(product, "nano", timing={"latency": 400})
    assert near.cycles + 396 <= far.cycles
    assert near.bytes == far.bytes


def test_costs_are_found_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By content: a network in a file, or of another name, is the same; with another constant it is another."""
    monkeypatch.setenv("SLEY_CACHE", str(tmp_path))
    ran: list[str] = []

    def run(workload: NetworkWorkload, config: ChipConfig, *_: object) -> Cost:
        from priced import priced

        ran.append(workload.name)
        return costs.of_plain(config, priced(config, {"latency": len(ran)}))  # type: ignore[arg-type]

    monkeypatch.setattr(costs, "_run", run)
    first = cost(network(), "nano")
    assert cost(network(), ChipConfig(name="other")).counters.chip == first.counters.chip
    save_network(network(), tmp_path / "layer.sley")
    assert cost(tmp_path / "layer.sley", "nano").cycles == first.cycles
    assert len(ran) == 1
    others = [
        cost(network(value=0.25), "nano"),
        cost(network(), "nano", schedule={"precision": "medium"}),
        cost(network(), "nano", timing={"latency": 9}),
        cost(network(), ChipConfig(unit_queue=16)),
    ]
    assert len({one.cycles for one in (first, *others)}) == len(ran) == 5
    monkeypatch.setattr(costs, "version", lambda: "another")
    cost(network(), "nano")
    assert len(ran) == 6


def test_a_function_is_never_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what it closes over."""
    ran: list[int] = []
    found = costs.of_plain(ChipConfig(), {"cycles": 1, "cores": [], "chip": {}})
    monkeypatch.setattr(costs, "_run", lambda *_: ran.append(1) or found)
    cost(product, "nano")
    cost(product, "nano")
    assert len(ran) == 2


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"network": "absent"}, "no network 'absent'"),
        ({"network": 7}, "int is no network; give a file"),
        ({"config": "absent"}, "no preset 'absent'"),
        ({"schedule": {"precision": "low"}, "network": network()}, "precision 'low'; there are medium, high, highest"),
        ({"schedule": {"rows": 8}}, "product has no parameter 'rows'; it has none"),
        ({"schedule": {"rows": 8}, "network": network()}, "layer has no parameter 'rows'; it has precision"),
        ({"timing": {"latency": 0}}, "latency must be in 1"),
        ({"timing": {"delay": 1}}, "no option 'delay'"),
        (
            {"config": ChipConfig(array=64, operand_types=("int8", "bf16"), vector_lanes=64, scratchpad_rows=256)},
            "buses of up to 64",
        ),
    ],
)
def test_what_has_no_cost(asked: dict[str, object], problem: str) -> None:
    given = {"network": product, "config": "nano", **asked}
    with pytest.raises((BadRequest, SleyError), match=problem):
        cost(**given)  # type: ignore[arg-type]
