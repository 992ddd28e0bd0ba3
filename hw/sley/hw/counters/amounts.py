"""Counters that each go up by what happens in a cycle."""

from collections.abc import Mapping

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.counters import COUNTER_BITS, GROUP_COUNTERS, Counter


def amount_layout(kind: type[Counter], widths: Mapping[Counter, int]) -> data.StructLayout:
    """A field for each counter, of the width that is given, or of 1 bit."""
    given = {counter.name: width for counter, width in widths.items()}
    return data.StructLayout({counter.name.lower(): given.get(counter.name, 1) for counter in kind})


class AmountCounters(wiring.Component):
    """Sums, one for each counter.

    Parameters
    ----------
    kind : a ``Counter`` enumeration
    widths : bits of the amounts; 1, for an event, where nothing is given

    Members
    -------
    amounts : In(amount_layout(kind, widths))
        Of this cycle.
    freeze : In(1)
        Count nothing in this cycle.
    counter : In(range(GROUP_COUNTERS))
        Which one ``value`` shows; one that does not exist is 0.
    value : Out(32)
        Combinational.

    An amount is counted one cycle after it is there. The sums start as zeros and have no reset.
    Cost for each counter: its width and 32 flip-flops, an adder, its part of a multiplexer.
    """

    amounts: data.View
    freeze: Signal
    counter: Signal
    value: Signal

    def __init__(self, kind: type[Counter], widths: Mapping[Counter, int]) -> None:
        self._kind = kind
        self._layout = amount_layout(kind, widths)
        super().__init__(
            {
                "amounts": In(self._layout),
                "freeze": In(1),
                "counter": In(range(GROUP_COUNTERS)),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        now = Signal(self._layout)
        m.d.sync += now.eq(self.amounts)
        for counter in self._kind:
            name = counter.name.lower()
            total = Signal(COUNTER_BITS, name=f"{name}_sum", reset_less=True)
            with m.If(~self.freeze):
                m.d.sync += total.eq(total + now[name])
            with m.If(self.counter == counter):
                m.d.comb += self.value.eq(total)
        return m
