"""Refreshes of an SDRAM: none comes late, whatever the accesses do."""

from dataclasses import replace

import pytest
from amaranth.hdl import Assert, Assume, Module, Mux, Signal

from sley.fpga.memory.sdram.part import COMMON_32M
from sley.fpga.memory.sdram.pins import Command
from sley.fpga.memory.sdram.refresh import Refresher, State
from sley.fpga.memory.sdram.timing import SdramTiming, sdram_timing
from sley.hw.testing.mutation import mutated, planted
from sley.hw.testing.proof import Counterexample, Property, prove

TIMING = replace(sdram_timing(COMMON_32M, 25_000_000, 2), power_up=3, refresh_interval=20, refresh=2, precharge=2)
BUSY = max(TIMING.activate_to_precharge, TIMING.write_to_precharge, TIMING.read_to_precharge)
"""Cycles after a grant in which banks cannot be precharged."""
LATE = max(BUSY, TIMING.refresh + TIMING.mode_set + 1)
DELAY = LATE + TIMING.precharge
"""What is proved; not more than ``refresh_delay`` promises."""


class Refreshed(Property):
    """From one regular refresh to the next pass at most an interval and the delay; nothing is granted between the
    precharge of all banks and the end of the refresh; if banks can be precharged ``BUSY`` cycles after a grant."""

    def __init__(self, dut: Refresher, timing: SdramTiming) -> None:
        super().__init__(dut)
        self.timing = timing

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut, timing = self.dut, self.timing
        inner = self.inner(m, dut)
        names = ("interval", "due", "pause", "elapsed", "state")
        interval, due, pause, elapsed, state = (inner[name] for name in names)
        may_precharge_all = self.free(1, "may_precharge_all")
        granted = Signal(range(BUSY + 1), init=BUSY)  # cycles ago, the last time
        refresh = dut.command == Command.REFRESH
        regular = Signal()  # a refresh was seen that is not of the sequence after power-up
        since = Signal(range(2 * timing.refresh_interval))
        longest = max(timing.refresh, timing.precharge)
        closed = Signal(range(longest + 1))  # cycles that must pass after a precharge or a refresh
        m.d.comb += dut.may_precharge_all.eq(may_precharge_all)
        m.d.sync += granted.eq(Mux(dut.granted, 1, Mux(granted == BUSY, BUSY, granted + 1)))
        m.d.sync += closed.eq(Mux(dut.precharge_all, timing.precharge - 1, Mux(closed == 0, 0, closed - 1)))
        with m.If(refresh):
            m.d.sync += [regular.eq(regular | ~dut.initialising), since.eq(1), closed.eq(timing.refresh - 1)]
        with m.Elif(since != 2 * timing.refresh_interval - 1):
            m.d.sync += since.eq(since + 1)

        age = timing.refresh_interval - 1 - interval  # of the last end of an interval
        first = timing.refresh + timing.mode_set  # a refresh that is due when the part wakes is that old at most
        idle = granted == BUSY
        initialising = dut.initialising
        precharging, refreshing, mode, idle_state = (state == name for name in State.__members__.values())
        m.d.comb += [
            Assume((granted < BUSY) | may_precharge_all),
            Assert(~regular | (since <= timing.refresh_interval + DELAY)),
            Assert((closed == 0) | (~dut.granted & (dut.command == Command.NOP))),
            # An inductive proof needs besides:
            Assert(interval < timing.refresh_interval),
            Assert(elapsed == (pause == 0)),
            Assert(~initialising | ~regular),
            Assert(~initialising | (idle & ~idle_state)),
            Assert(initialising | ~mode),
            Assert(~mode | ~due | (age + pause + 1 <= timing.refresh)),
            Assert(initialising | ~precharging | (elapsed & due & ((granted >= age + 1) | (idle & (age + 1 <= LATE))))),
            Assert(initialising | ~refreshing | (due & (age + pause + 1 <= DELAY))),
            Assert(~idle_state | elapsed | (~due & (age + pause + 1 <= DELAY + timing.refresh)) | ~regular),
            Assert(~idle_state | elapsed | regular | idle),
            Assert(~idle_state | elapsed | regular | ~due | (age + pause + 1 <= first)),
            Assert(~idle_state | ~elapsed | ~due | (granted >= age + 1) | (idle & (age + 1 <= first))),
            Assert(~regular | due | (since <= age + 1)),
            Assert(~regular | ~due | (since <= timing.refresh_interval + age + 1)),
            Assert((closed == 0) | (closed == pause)),
        ]
        return m


def test_refreshes_are_never_late() -> None:
    assert TIMING.refresh_delay >= DELAY
    prove(Refreshed(Refresher(TIMING), TIMING), 3)


@planted(
    {
        "too short": ("[*wait(timing.refresh), remaining", "[*wait(1), remaining"),
        "granted while due": ("self.granted.eq(~due)", "self.granted.eq(1)"),
        "takes its time": ("m.If(self.may_precharge_all)", "m.If(self.may_precharge_all & (interval == 3))"),
        "forgotten": ("with m.Elif(refreshed):", "with m.Elif(refreshed | self.may_precharge_all):"),
    }
)
def test_late_refreshes_are_found(line: str, bug: str) -> None:
    with pytest.raises(Counterexample):
        prove(Refreshed(mutated(Refresher, line, bug)(TIMING), TIMING), 76, induction=False)
