"""Counters of what happens in a cycle, of which exactly one counts."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.counters import COUNTER_BITS, GROUP_COUNTERS, Counter


def class_events(kind: type[Counter]) -> data.StructLayout:
    """A bit for each class but the last: that is what happens when no bit is set."""
    return data.StructLayout({counter.name.lower(): 1 for counter in list(kind)[:-1]})


class ClassCounters(wiring.Component):
    """Counts cycles, each in one class: the first of those whose bit is set, or the last class if there is none.

    The counters are words of a small memory, of which one is incremented in each cycle: they add up to the cycles
    counted because nothing else can happen.

    Parameters
    ----------
    kind : a ``Counter`` enumeration of at most GROUP_COUNTERS classes, numbered from 0 in the order of their priority

    Members
    -------
    events : In(class_events(kind))
        Of this cycle.
    freeze : In(1)
        Count nothing in this cycle.
    counter : In(range(GROUP_COUNTERS))
        Which one ``value`` shows, while ``freeze``.
    value : Out(32)
        Combinational; undefined without ``freeze``.

    A cycle is counted one cycle after its events. The memory starts as zeros and has no reset.
    Cost: 4 flip-flops, a memory of 16 x 32 bits with an asynchronous read port (look-up tables), an incrementer.
    """

    events: data.View
    freeze: Signal
    counter: Signal
    value: Signal

    def __init__(self, kind: type[Counter]) -> None:
        numbers = [counter.value for counter in kind]
        if numbers != list(range(len(numbers))):
            raise ValueError(f"{kind.__name__} has the numbers {numbers}; they must be 0, 1, 2, ...")
        if not 2 <= len(numbers) <= GROUP_COUNTERS:
            raise ValueError(f"{kind.__name__} has {len(numbers)} classes; it must have 2 to {GROUP_COUNTERS}")
        self._kind = kind
        super().__init__(
            {
                "events": In(class_events(kind)),
                "freeze": In(1),
                "counter": In(range(GROUP_COUNTERS)),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        *others, last = self._kind
        now = Signal(range(GROUP_COUNTERS), init=last)
        m.d.sync += now.eq(last)
        for counter in reversed(others):  # the first one wins
            with m.If(self.events[counter.name.lower()]):
                m.d.sync += now.eq(counter)

        m.submodules.counts = counts = Memory(shape=COUNTER_BITS, depth=GROUP_COUNTERS, init=[])
        read = counts.read_port(domain="comb")
        write = counts.write_port()
        m.d.comb += [
            read.addr.eq(Mux(self.freeze, self.counter, now)),
            self.value.eq(read.data),
            write.addr.eq(now),
            write.data.eq(read.data + 1),
            write.en.eq(~self.freeze),
        ]
        return m
