"""Counters that each go up by what happens in a cycle."""

from collections.abc import Mapping

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from sley.abi.counters import GROUP_COUNTERS, Counter


def amount_layout(kind: type[Counter], widths: Mapping[Counter, int]) -> data.StructLayout:
    """A field for each counter, of the width that is given, or of 1 bit."""
    given = {counter.name: width for counter, width in widths.items()}
    return data.StructLayout({counter.name.lower(): given.get(counter.name, 1) for counter in kind})


class AmountCounters(wiring.Component):
    """The low bits of sums, one for each counter.

    Whoever has the high bits looks at the top bit of each often enough to see that it fell: what is here is never
    cleared. The sums start as zeros and are never reset.

    Parameters
    ----------
    kind : type of Counter
        An enumeration of at most GROUP_COUNTERS counters.
    widths : mapping of Counter to int
        Bits of the amounts; 1, for an event, where nothing is given.
    period : int
        Cycles without ``freeze`` from one look at a counter to the next, at most.

    Members
    -------
    amounts : In(amount_layout(kind, widths))
        Of this cycle.
    freeze : In(1)
        Count nothing in this cycle.
    counter : In(range(GROUP_COUNTERS))
        Which one is shown; one that does not exist is 0.
    value : Out(low bits), top : Out(1), weight : Out(one bit more)
        Its low bits, the top bit of them, and what that is worth when it falls. Combinational.

    Latency
    -------
    An amount is counted one cycle after it is there.

    Cost
    ----
    For each counter its width, the bits of ``period`` and one more, and a narrow adder.
    """

    amounts: data.View
    freeze: Signal
    counter: Signal
    value: Signal
    top: Signal
    weight: Signal

    def __init__(self, kind: type[Counter], widths: Mapping[Counter, int], period: int) -> None:
        self._kind = kind
        self._layout = amount_layout(kind, widths)
        # Between two looks a sum moves by at most half of what its low bits can hold.
        self._bits = {name: ceil_log2(period * ((1 << field.width) - 1)) + 1 for name, field in self._layout}
        super().__init__(
            {
                "amounts": In(self._layout),
                "freeze": In(1),
                "counter": In(range(GROUP_COUNTERS)),
                "value": Out(max(self._bits.values())),
                "top": Out(1),
                "weight": Out(max(self._bits.values()) + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        now = Signal(self._layout)
        m.d.sync += now.eq(self.amounts)
        sums = {name: Signal(bits, name=f"{name}_low", reset_less=True) for name, bits in self._bits.items()}
        with m.If(~self.freeze):
            m.d.sync += [low.eq(low + now[name]) for name, low in sums.items()]
        with m.Switch(self.counter):
            for counter in self._kind:
                low = sums[counter.name.lower()]
                with m.Case(counter):
                    m.d.comb += [self.value.eq(low), self.top.eq(low[-1]), self.weight.eq(1 << len(low))]
        return m
