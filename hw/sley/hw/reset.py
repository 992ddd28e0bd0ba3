"""Reset of the whole chip by software, without hurting the memory bus."""

from amaranth import Module, Signal
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out


class _State(enum.Enum):
    RUN = 0
    DRAIN = 1
    RESET = 2


class ResetControl(wiring.Component):
    """Drains the memory port, then holds everything else in reset for one cycle.

    Members
    -------
    request : In(1)
        Begin; ignored while one is in progress.
    drain : Out(1), drained : In(1)
        To and from the memory port.
    reset : Out(1)
        For everything but memory port, register bank and bus target.
    resetting : Out(1)
        A reset is in progress.

    Latency
    -------
    Three cycles and what the bus needs to answer everything outstanding.
    """

    request: Signal
    drain: Signal
    drained: Signal
    reset: Signal
    resetting: Signal

    def __init__(self) -> None:
        super().__init__({"request": In(1), "drain": Out(1), "drained": In(1), "reset": Out(1), "resetting": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        state = Signal(_State)
        with m.Switch(state):
            with m.Case(_State.RUN), m.If(self.request):
                m.d.sync += [state.eq(_State.DRAIN), self.drain.eq(1)]
            with m.Case(_State.DRAIN), m.If(self.drained):
                m.d.sync += [state.eq(_State.RESET), self.reset.eq(1)]
            with m.Case(_State.RESET):
                m.d.sync += [state.eq(_State.RUN), self.reset.eq(0), self.drain.eq(0)]
        m.d.comb += self.resetting.eq(state != _State.RUN)
        return m
