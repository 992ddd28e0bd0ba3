"""Cycles of a part at a clock, and what is refused."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sley.fpga.memory.sdram.part import COMMON_32M, SdramPart
from sley.fpga.memory.sdram.pins import check_pin_clock
from sley.fpga.memory.sdram.timing import cycles, sdram_timing


@pytest.mark.parametrize("clock_hz", [4_000_000, 25_000_000, 41_666_666, 100_000_000, 100_000_001, 133_333_333])
@pytest.mark.parametrize("burst", [1, 2, 8])
def test_cycles_take_at_least_the_time(clock_hz: int, burst: int) -> None:
    part, timing = COMMON_32M, sdram_timing(COMMON_32M, clock_hz, burst)
    period = Fraction(10**9, clock_hz)
    assert timing.activate_to_column * period >= part.activate_to_column
    assert timing.precharge * period >= part.precharge
    assert timing.activate_to_precharge * period >= part.activate_to_precharge
    assert (timing.activate_to_precharge + timing.precharge) * period >= part.activate_to_activate
    assert timing.bank_to_bank * period >= part.bank_to_bank
    assert (timing.write_to_precharge - burst + 1) * period >= part.write_recovery
    assert timing.write_to_precharge >= burst + 1
    assert timing.refresh * period >= part.refresh
    assert timing.mode_set * period >= part.mode_set
    assert timing.power_up * period >= part.power_up
    assert period >= part.clock_period[timing.cas]
    assert timing.cas == (2 if clock_hz <= 100_000_000 else 3)
    assert (part.refreshes * timing.refresh_interval + timing.refresh_delay) * period <= part.refresh_period


@pytest.mark.parametrize(("ns", "expected"), [(0, 1), (10, 1), (10.01, 2), (20, 2), (66, 7)])
def test_cycles(ns: float, expected: int) -> None:
    assert cycles(ns, 100_000_000) == expected


def test_table_of_the_documentation() -> None:
    found = {}
    for mhz in (25, 100, 133):
        t = sdram_timing(COMMON_32M, mhz * 1_000_000, 1)
        found[mhz] = (t.activate_to_column, t.precharge, t.activate_to_precharge, t.bank_to_bank, t.refresh, t.cas)
    assert found == {25: (1, 1, 3, 1, 2, 2), 100: (3, 3, 5, 2, 7, 2), 133: (3, 3, 6, 2, 10, 3)}
    assert sdram_timing(COMMON_32M, 25_000_000, 2).refresh_interval == 195


def test_clocks_that_are_refused_and_the_bounds_that_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"clock_hz is 133333334; the common 32 MiB SDRAM takes at most 133333333: lower"
    ):
        sdram_timing(COMMON_32M, 133_333_334, 2)
    with pytest.raises(
        ValueError, match=r"clock_hz is 1000000; with less than (\d+) refreshes .*: raise the clock"
    ) as e:
        sdram_timing(COMMON_32M, 1_000_000, 2)
    lowest = int(str(e.value).split("with less than ")[1].split()[0])
    sdram_timing(COMMON_32M, lowest, 2)
    with pytest.raises(ValueError, match="refreshes"):
        sdram_timing(COMMON_32M, lowest - 1, 2)


def test_clock_on_pins() -> None:
    check_pin_clock(COMMON_32M, 41_666_666)
    with pytest.raises(
        ValueError, match=r"clock_hz is 41700000; data of .* 12 ns after .*: at most 41666666, lower the"
    ):
        check_pin_clock(COMMON_32M, 41_700_000)


def test_part() -> None:
    assert COMMON_32M.memory_bytes == 32 << 20
    assert replace(COMMON_32M, column_bits=10).memory_bytes == 64 << 20
    with pytest.raises(ValueError, match=r"activate_to_activate of odd is 70 ns; it must be at most .* = 66 ns: raise"):
        SdramPart("odd", activate_to_activate=70)
