"""Least intervals between commands."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Interlock(wiring.Component):
    """Reports when enough cycles have passed since the last of several events.

    Parameters
    ----------
    cycles : int
        For each event how many, at least 1.

    Members
    -------
    events : In(len(cycles))
        A bit for each event.
    ready : Out(1)
        After event k in cycle t it is low in t + 1 to t + ``cycles[k]`` - 1. From a register.
    ready_next : Out(1)
        ``ready`` will be high in the next cycle, if there is no event in this one. From a register.

    Cost
    ----
    A flip-flop for each of the greatest number of cycles.
    """

    events: Signal
    ready: Signal
    ready_next: Signal

    def __init__(self, *cycles: int) -> None:
        self._cycles = cycles
        super().__init__({"events": In(len(cycles)), "ready": Out(1), "ready_next": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ahead = Signal(max(self._cycles))  # bit k: not ready in k cycles
        after = ahead >> 1
        for event, cycles in zip(self.events, self._cycles, strict=True):
            after = after | Mux(event, (1 << (cycles - 1)) - 1, 0)
        m.d.sync += ahead.eq(after)
        m.d.comb += [self.ready.eq(~ahead[0]), self.ready_next.eq(~ahead[1:2].any())]
        return m
