"""What an SDRAM needs without being asked: the sequence after power-up, and refreshes."""

from amaranth import Module, Mux, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.fpga.memory.sdram.pins import PRECHARGE_ALL, Command
from sley.fpga.memory.sdram.timing import SdramTiming

FIRST_REFRESHES = 8


class State(enum.Enum):
    """What is next."""

    CLOSE = 0
    REFRESH = 1
    MODE = 2
    REST = 3


class Upkeep(wiring.Component):
    """Gives the commands after power-up (wait, precharge all, 8 refreshes, mode), then a refresh in each interval.

    Parameters: ``timing``.
    Members: ``granted``: accesses may give a command in this cycle; otherwise ``command`` is given, with ``address``.
    ``may_close``: all banks may be precharged. ``close``: they are. ``asleep``: power-up is not over.
    From the end of an interval to its refresh pass at most ``timing.refresh_delay`` cycles, if nothing but their times
    keeps banks from being precharged.
    """

    granted: Signal
    command: Signal
    address: Signal
    may_close: Signal
    close: Signal
    asleep: Signal

    def __init__(self, timing: SdramTiming) -> None:
        self._timing = timing
        super().__init__(
            {
                "granted": Out(1),
                "command": Out(Command),
                "address": Out(11),
                "may_close": In(1),
                "close": Out(1),
                "asleep": Out(1, init=1),
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
        over = Signal()  # the time after the last command
        left = Signal(range(FIRST_REFRESHES + 1), init=FIRST_REFRESHES)
        mode = timing.cas << 4 | exact_log2(timing.burst)

        def then(cycles: int) -> list[object]:
            """The next command comes that many cycles after this one."""
            return [pause.eq(cycles - 1), over.eq(cycles == 1)]

        with m.If(~over):
            m.d.sync += [pause.eq(pause - 1), over.eq(pause == 1)]
        state = Signal(State)
        with m.If(over), m.Switch(state):
            with m.Case(State.CLOSE), m.If(self.may_close):
                m.d.comb += [self.close.eq(1), self.command.eq(Command.PRECHARGE), self.address.eq(PRECHARGE_ALL)]
                m.d.sync += [*then(timing.precharge), state.eq(State.REFRESH)]
            with m.Case(State.REFRESH):
                m.d.comb += [refreshed.eq(1), self.command.eq(Command.REFRESH)]
                m.d.sync += [*then(timing.refresh), left.eq(left - 1)]
                with m.If(~self.asleep):
                    m.d.sync += state.eq(State.REST)
                with m.Elif(left == 1):
                    m.d.sync += state.eq(State.MODE)
            with m.Case(State.MODE):
                m.d.comb += [self.command.eq(Command.MODE), self.address.eq(mode)]
                m.d.sync += [*then(timing.mode_set), self.asleep.eq(0), state.eq(State.REST)]
            with m.Case(State.REST):
                m.d.comb += self.granted.eq(~due)
                with m.If(due):
                    m.d.sync += state.eq(State.CLOSE)
        return m
