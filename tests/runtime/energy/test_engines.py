"""Energy of runs: the same on the model with cycles and on the gateware, by launch, at the points of a governor."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from sley.driver import BadRequest
from sley.driver.errors import NoCycleCounts
from sley.runtime import Device, Graph, blas, energy
from sley.sim.engines.options import default_engine

MODEL, FAST = "model:nano?memory=1M&cycles=on", "fast:nano?memory=1M"
needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
SLOW, QUICK = energy.OperatingPoint(2e8, 0.6, 0.01), energy.OperatingPoint(1e9, 0.9, 0.01)


def graph_of(device: Device) -> Graph:
    """Two products of odd sizes, of which the second takes the first one's result."""
    rng = np.random.default_rng(1)
    a, b, c = (device.array(rng.integers(-9, 9, size, np.int8)) for size in ((9, 17), (17, 6), (6, 33)))
    first, second = device.empty((9, 6), np.int8), device.empty((9, 33), np.int32)
    with device.stream.capture() as graph:
        blas.gemm(a, b, out=first, scale=0.01)
        blas.gemm(first, c, out=second)
    return graph


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    if default_engine() != "fast":
        pytest.skip("no C compiler")
    with Device.open(MODEL) as device:
        yield device


@needs_compiler
def test_model_and_gateware_agree_in_every_bit(device: Device) -> None:
    with Device.open(FAST) as fast:
        found = []
        for opened in (device, fast):
            graph = graph_of(opened)
            graph.launch()
            energies = energy.by_launch(graph, opened.stream)
            found.append([{**each.by_unit, "all": each.joules} for each in energies])
        assert found[0] == found[1]
        assert len(found[0]) == 2
        assert all(value > 0 for unit, value in found[0][0].items() if unit != "leakage")


def test_without_cycles() -> None:
    with Device.open("model:nano?memory=1M") as plain, pytest.raises(NoCycleCounts, match="cycles=on"):
        energy.by_launch(graph_of(plain), plain.stream)


def test_launches_add_up(device: Device) -> None:
    """Of a graph as a whole, and launch by launch: the same work of the units, and one more doorbell and fence."""
    graph = graph_of(device)
    graph.launch()
    with device.stream.counted() as count:
        graph.launch()
    whole = energy.estimate(count.counters, device.config)
    parts = energy.by_launch(graph, device.stream)
    added = parts[0] + parts[1]
    assert added.joules == pytest.approx(sum(part.joules for part in parts))
    for unit in ("matrix", "vector", "scratchpad", "accumulators"):
        assert added.by_unit[unit] == pytest.approx(whole.by_unit[unit])
    assert added.seconds == pytest.approx(sum(part.seconds for part in parts))
    assert {s.activity.work for s in added.spent} == {s.activity.work for s in whole.spent}
    assert len(added.spent) == len({(s.activity.unit, s.activity.work) for s in added.spent})


def test_governor(device: Device) -> None:
    """A governor that slows down whatever took the matrix unit less than a tenth of its cycles; a clock that is set."""
    graph = graph_of(device)
    graph.launch()
    seen: list[tuple[str, int]] = []
    clock: list[energy.OperatingPoint] = []

    def govern(name: str, past: Sequence[energy.Interval]) -> energy.OperatingPoint:
        seen.append((name, len(past)))
        return SLOW if len(past) == 1 else QUICK

    meter = energy.Meter(device.stream, govern, set_clock=clock.append)
    with pytest.raises(BadRequest, match="no energy yet"):
        _ = meter.energy
    meter.launch(graph)
    with meter.interval("both"):
        graph.launch()
    names = [launch.program.name for launch in graph.launches]
    assert seen == [(names[0], 0), (names[1], 1), ("both", 2)]
    assert [i.point for i in meter.intervals] == [QUICK, SLOW, QUICK]
    assert clock == [QUICK, SLOW, QUICK]
    for interval in meter.intervals:
        e = interval.energy
        assert e == energy.estimate(interval.counters, device.config, point=interval.point)
        assert e.seconds == interval.counters.cycles / interval.point.hertz
    assert meter.energy.joules == pytest.approx(sum(i.energy.joules for i in meter.intervals))
    assert meter.energy.seconds == pytest.approx(sum(i.energy.seconds for i in meter.intervals))
    quick = energy.estimate(meter.intervals[1].counters, device.config)
    assert meter.intervals[1].energy.by_unit["matrix"] == pytest.approx(quick.by_unit["matrix"] * (0.6 / 0.9) ** 2)


def test_clock_is_set_when_it_changes(device: Device) -> None:
    clock: list[energy.OperatingPoint] = []
    meter = energy.Meter(device.stream, lambda name, past: QUICK, set_clock=clock.append)
    meter.launch(graph_of(device))
    assert clock == [QUICK]


def test_no_such_launch(device: Device) -> None:
    with pytest.raises(BadRequest, match="launch 2 of a graph that has 2"):
        graph_of(device).launch_one(2)
