"""Counters that each go up by what happens in a cycle."""

from collections.abc import Mapping

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.counters import COUNTER_BITS, GROUP_COUNTERS, Counter


def amount_layout(kind: type[Counter], widths: Mapping[Counter, int]) -> data.StructLayout:
    """A field for each counter, of the width that is given, or of 1 bit."""
    given = {counter.name: width for counter, width in widths.items()}
    return data.StructLayout({counter.name.lower(): given.get(counter.name, 1) for counter in kind})


class AmountCounters(wiring.Component):
    """Sums, one for each counter.

    Amounts are collected in narrow registers, one for each counter. A scan visits one register a cycle, adds it to its
    sum, a word of a small memory, and clears it: one wide adder serves all sums, and no wide multiplexer shows them.

    Parameters
    ----------
    kind : a ``Counter`` enumeration of at most GROUP_COUNTERS counters
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
        Combinational; right from the cycle on in which ``freeze`` is high for the GROUP_COUNTERS + 1st time in a row.

    An amount is counted one cycle after it is there. The sums start as zeros; neither they, nor what is collected, nor
    the scan is ever reset. Cost: for each counter twice its width and 4 flip-flops, and a narrow adder; a memory of
    16 x 32 bits with two asynchronous read ports (look-up tables), an adder of 32 bits.
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
        visited = Signal(range(GROUP_COUNTERS), reset_less=True)
        m.d.sync += visited.eq(visited + 1)
        taken = Signal(COUNTER_BITS)
        for counter in self._kind:
            amount = now[counter.name.lower()]
            most = GROUP_COUNTERS * ((1 << len(amount)) - 1)  # between two visits
            collected = Signal(range(most + 1), name=f"{counter.name.lower()}_collected", reset_less=True)
            left = Signal.like(collected, name=f"{counter.name.lower()}_left")
            m.d.comb += left.eq(collected)
            with m.If(visited == counter):
                m.d.comb += [taken.eq(collected), left.eq(0)]
            m.d.sync += collected.eq(left + (amount & (~self.freeze).replicate(len(amount))))

        m.submodules.sums = sums = Memory(shape=COUNTER_BITS, depth=GROUP_COUNTERS, init=[])
        before = sums.read_port(domain="comb")
        shown = sums.read_port(domain="comb")
        write = sums.write_port()
        m.d.comb += [
            before.addr.eq(visited),
            write.addr.eq(visited),
            write.data.eq(before.data + taken),
            write.en.eq(1),
            shown.addr.eq(self.counter),
            self.value.eq(shown.data),
        ]
        return m
