"""Initialisation of an SDRAM after power-up, and its refreshes."""

from amaranth import Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.fpga.memory.sdram.pins import PRECHARGE_ALL, Command
from sley.fpga.memory.sdram.timing import SdramTiming

FIRST_REFRESHES = 8


class State(enum.Enum):
    """The next command."""

    PRECHARGE = 0
    REFRESH = 1
    MODE = 2
    IDLE = 3


class Refresher(wiring.Component):
    """Issues the commands after power-up (wait, precharge all, 8 refreshes, mode), then a refresh in each interval.

    Parameters
    ----------
    timing : SdramTiming

    Members
    -------
    granted : Out(1)
        Accesses may issue a command in this cycle; otherwise ``command`` is issued, with ``address``.
    command : Out(Command)
    address : Out(11)
    may_precharge_all : In(1)
        All banks may be precharged.
    precharge_all : Out(1)
        They are precharged in this cycle.
    initialising : Out(1)
        The sequence after power-up is not complete.

    From the end of an interval to its refresh pass at most ``timing.refresh_delay`` cycles, if nothing but their least
    intervals keeps banks from being precharged.
    """

    granted: Signal
    command: Signal
    address: Signal
    may_precharge_all: Signal
    precharge_all: Signal
    initialising: Signal

    def __init__(self, timing: SdramTiming) -> None:
        self._timing = timing
        super().__init__(
            {
                "granted": Out(1),
                "command": Out(Command),
                "address": Out(11),
                "may_precharge_all": In(1),
                "precharge_all": Out(1),
                "initialising": Out(1, init=1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        timing = self._timing
        interval = Signal(range(timing.refresh_interval), init=timing.refresh_interval - 1)
        due = Signal()
        refreshed = Signal()
        m.d.sync += interval.eq(Mux(interval == 0, timing.refresh_interval - 1, interval - 1))
        with m.If(interval == 0):
            m.d.sync += due.eq(1)
        with m.Elif(refreshed):
            m.d.sync += due.eq(0)

        longest = max(timing.power_up, timing.refresh, timing.precharge, timing.mode_set)
        pause = Signal(range(longest + 1), init=max(1, timing.power_up - 1))
        elapsed = Signal()  # the time that the last command takes
        remaining = Signal(range(FIRST_REFRESHES + 1), init=FIRST_REFRESHES)
        mode = timing.cas << 4 | exact_log2(timing.burst)

        def wait(cycles: int) -> list[object]:
            """The next command comes so many cycles after this one."""
            return [pause.eq(cycles - 1), elapsed.eq(cycles == 1)]

        with m.If(~elapsed):
            m.d.sync += [pause.eq(pause - 1), elapsed.eq(pause == 1)]
        state = Signal(State)
        with m.If(elapsed), m.Switch(state):
            with m.Case(State.PRECHARGE), m.If(self.may_precharge_all):
                m.d.comb += [
                    self.precharge_all.eq(1),
                    self.command.eq(Command.PRECHARGE),
                    self.address.eq(PRECHARGE_ALL),
                ]
                m.d.sync += [*wait(timing.precharge), state.eq(State.REFRESH)]
            with m.Case(State.REFRESH):
                m.d.comb += [refreshed.eq(1), self.command.eq(Command.REFRESH)]
                m.d.sync += [*wait(timing.refresh), remaining.eq(remaining - 1)]
                with m.If(~self.initialising):
                    m.d.sync += state.eq(State.IDLE)
                with m.Elif(remaining == 1):
                    m.d.sync += state.eq(State.MODE)
            with m.Case(State.MODE):
                m.d.comb += [self.command.eq(Command.MODE), self.address.eq(mode)]
                m.d.sync += [*wait(timing.mode_set), self.initialising.eq(0), state.eq(State.IDLE)]
            with m.Case(State.IDLE):
                m.d.comb += self.granted.eq(~due)
                with m.If(due):
                    m.d.sync += state.eq(State.PRECHARGE)
        return m
