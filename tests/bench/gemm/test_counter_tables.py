"""Tables of counters: what they show adds up."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.table import Table

from sley.abi.config import preset
from sley.abi.counters import CHIP_GROUPS, COUNTERS, UNIT_GROUPS, Bus, CounterGroup, MatrixCycle, Traffic
from sley.bench.gemm.counter_tables import OUTSIDE, Needed, bus_table, cycle_table, work_table
from sley.bench.gemm.measure import bench_problem, measure_gemm
from sley.driver import CORE_GROUPS, Counters, Values
from sley.runtime import Count, Device
from sley.sim.engines.options import default_engine


def counted(cores: int) -> Count:
    """1000 cycles, 10 of them outside: a third each of the matrix unit's three first classes that occur."""
    config = preset("nano").replace(cores_x=cores)
    core: Values = {group: dict.fromkeys(COUNTERS[group], 0) for group in CORE_GROUPS}
    chip: Values = {group: dict.fromkeys(COUNTERS[group], 0) for group in CHIP_GROUPS}
    for values in (core, chip):
        for group in values:
            values[group] = dict(values[group]) | {max(COUNTERS[group]): 1000}  # type: ignore[index]
    matrix = {MatrixCycle.ROW_INT8: 333, MatrixCycle.WEIGHTS: 333, MatrixCycle.EMPTY: 324, MatrixCycle.IDLE: 10}
    core = {**core, CounterGroup.MATRIX: dict.fromkeys(MatrixCycle, 0) | matrix}
    core[CounterGroup.TRAFFIC] = dict.fromkeys(Traffic, 0) | {Traffic.LOAD_BEATS: 100, Traffic.LOAD_BYTES: 300}
    chip = {**chip, CounterGroup.BUS: {Bus.CYCLES: 1000, Bus.READ_BURSTS: 7, Bus.WRITE_BURSTS: 8}}
    return Count(990, counters=Counters(config, (core,) * cores, chip))


def text(table: Table) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("cores", [1, 3])
def test_shares(cores: int) -> None:
    shown = text(cycle_table(counted(cores)))
    assert shown.count("333 = 33.3%") == 2 * cores
    assert shown.count("1,000 = 100.0%") == len(UNIT_GROUPS) * cores
    assert shown.count("10 = 1.0%") == len(UNIT_GROUPS) * cores
    assert shown.count(OUTSIDE) == len(UNIT_GROUPS)
    assert "HAZARD" not in shown
    assert "rounded" not in shown


def test_rounding_is_shown() -> None:
    count = counted(1)
    matrix = count.counters.cores[0][CounterGroup.MATRIX]
    split = {MatrixCycle.ROW_INT8: 3337, MatrixCycle.WEIGHTS: 3337, MatrixCycle.EMPTY: 3316, MatrixCycle.IDLE: 10}
    matrix.update(split)  # type: ignore[attr-defined]
    count.counters.chip[CounterGroup.BUS][Bus.CYCLES] = 10_000  # type: ignore[index]
    count.measured = 9_990
    assert "10,000 = 100.0% (rounded 100.1%)" in text(cycle_table(count))


def test_work() -> None:
    shown = text(work_table(counted(2).counters, Needed(2 * 333 * 16 // 2, 300, 0)))
    assert "10,656" in shown
    assert shown.count("50.0%") == 2  # multiply-accumulates, runs
    assert "37.5%" in shown  # beats of 4 bytes
    assert "refused" not in shown


def test_bus() -> None:
    shown = text(bus_table(counted(1)))
    assert OUTSIDE not in shown
    assert shown.count("1,000 = 100.0%") == 4


@pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
@pytest.mark.parametrize("int8", [False, True])
def test_gemm(int8: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """A whole measurement: what was needed is what was moved, where nothing is read twice."""
    with Device.open("fast:nano?memory=1M") as device:
        r = measure_gemm(device, bench_problem((8, 8, 16), result="int8" if int8 else None), counted=True)
    assert r.count is not None
    c = r.count.counters
    assert r.count.cycles == r.cycles
    assert r.needed.macs == 8 * 8 * 16 == c.macs(0)
    assert c.traffic(Traffic.STORE_BYTES) == r.needed.written
    assert c.traffic(Traffic.LOAD_BYTES) >= r.needed.read
    tables: list[Callable[[Count], Table]] = [cycle_table, bus_table]
    assert all("100.0%" in text(table(r.count)) for table in tables)
