"""Times that have to pass after something."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Hold(wiring.Component):
    """Says when enough cycles have passed since the last of several events.

    Parameters: ``cycles``: for each event how many, at least 1.
    Members: ``events``; ``free``: with event k in cycle t it is low in t + 1 to t + ``cycles[k]`` - 1; ``soon``: it
    will be high in the next cycle, if there is no event in this one. Both come from registers. Cost: a flip-flop for
    each of the greatest number of cycles.
    """

    events: Signal
    free: Signal
    soon: Signal

    def __init__(self, *cycles: int) -> None:
        self._cycles = cycles
        super().__init__({"events": In(len(cycles)), "free": Out(1), "soon": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ahead = Signal(max(self._cycles))  # bit k: not free in k cycles
        after = ahead >> 1
        for event, cycles in zip(self.events, self._cycles, strict=True):
            after = after | Mux(event, (1 << (cycles - 1)) - 1, 0)
        m.d.sync += ahead.eq(after)
        m.d.comb += [self.free.eq(~ahead[0]), self.soon.eq(~ahead[1:2].any())]
        return m
