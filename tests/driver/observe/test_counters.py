"""Counters in the driver: names, differences, what an engine without cycles says."""

import pytest

from sley.abi.config import preset
from sley.abi.counters import (
    CHIP_GROUPS,
    COUNTER_BITS,
    COUNTERS,
    GROUP_COUNTERS,
    Bus,
    Counter,
    CounterGroup,
    MatrixCycle,
    Traffic,
    is_classes,
)
from sley.driver.device import Driver
from sley.driver.errors import BadRequest, NoCycleCounts
from sley.driver.observe.counters import CORE_GROUPS, Counters, Values

QUAD = preset("quad")


def filled(groups: tuple[CounterGroup, ...], value: int) -> Values:
    return {group: dict.fromkeys(COUNTERS[group], value) for group in groups}


def counters(value: int) -> Counters:
    return Counters(QUAD, tuple(filled(CORE_GROUPS, value + core) for core in range(4)), filled(CHIP_GROUPS, value))


def test_every_counter_is_described_once() -> None:
    for group, kind in COUNTERS.items():
        members: list[Counter] = list(kind)
        assert [c.value for c in members] == list(range(len(members)))
        assert len(members) <= GROUP_COUNTERS
        assert all(c.doc.endswith(".") and c.doc[0].isupper() for c in members)
        if is_classes(group):
            assert members[-1].name == "IDLE"
            assert {c.counts.value for c in members} <= {"cycles", "beats"}


def test_differences_wrap() -> None:
    difference = counters(5) - counters((1 << COUNTER_BITS) - 10)
    assert difference.cycles == 15
    assert difference.cores[3][CounterGroup.MATRIX][MatrixCycle.DRAIN] == 15
    assert difference.traffic(Traffic.LOAD_BEATS) == 4 * 15
    assert difference.share(CounterGroup.BUS, Bus.CYCLES) == 1
    assert difference.share(CounterGroup.MATRIX, MatrixCycle.DRAIN, core=2) == 1


def test_macs() -> None:
    assert counters(0).macs(0) == 0
    assert counters(0).macs(3) == 16 * (3 * 32 + 3 * 16)


def test_refuses_other_chip() -> None:
    other = Counters(preset("nano"), (filled(CORE_GROUPS, 0),), filled(CHIP_GROUPS, 0))
    with pytest.raises(BadRequest, match="nano and quad"):
        _ = counters(3) - other


def test_no_cycles() -> None:
    with pytest.raises(NoCycleCounts, match="use its option cycles=on, or fast, rtl or pysim"):
        _ = (counters(3) - counters(3)).cycles


@pytest.mark.parametrize(("options", "has"), [("", False), ("&cycles=on", True)])
def test_which_engines_have_cycles(options: str, has: bool) -> None:
    """The counters go on behind the question."""
    with Driver.open(f"model:nano?memory=64K{options}") as driver:
        assert driver.has_cycles == driver.has_cycles == has
        before = driver.counters()
        driver.transport.advance(100)
        assert (driver.counters() - before).has_cycles == has


def test_reading_thaws_and_logs() -> None:
    lines: list[str] = []
    with Driver.open("model:quad?memory=1M") as driver:
        driver.registers.log = lines.append
        driver.counters()
        assert lines[0] == "write CHIP.COUNTER_CONTROL freeze=1"
        assert lines[-1] == "write CHIP.COUNTER_CONTROL freeze=0"
        driver.registers.log = None
        text = str(driver.dump())
    assert "[counters]" in text
    assert "core 3 matrix: all zero" in text
    assert "memory bus read: all zero" in text
