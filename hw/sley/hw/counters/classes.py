"""Counters of what happens in a cycle, of which exactly one counts."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.counters import GROUP_COUNTERS, Counter


def class_events(kind: type[Counter]) -> data.StructLayout:
    """A bit for each class but the last: that is what happens when no bit is set."""
    return data.StructLayout({counter.name.lower(): 1 for counter in list(kind)[:-1]})


class ClassCounters(wiring.Component):
    """Counts cycles, each in one class: the first of those whose bit is set, or the last class if there is none.

    Here are the low bits of the counters, words of a small memory, of which one is incremented in each cycle: they add
    up to the cycles counted because nothing else can happen. Whoever has the high bits looks at the top bit of each
    word often enough to see that it fell: there is no carry to wait for. The memory starts as zeros and has no reset.

    Parameters
    ----------
    kind : type of Counter
        An enumeration of 2 to GROUP_COUNTERS classes, numbered from 0 in the order of their priority.
    bits : int
        Of a counter that are here.

    Members
    -------
    events : In(class_events(kind))
        Of this cycle.
    freeze : In(1)
        Count nothing in this cycle.
    counter : In(range(GROUP_COUNTERS))
        Which one ``top`` and, while ``freeze``, ``value`` show.
    top : Out(1)
        Its top bit. Combinational.
    value : Out(bits)
        Combinational; undefined without ``freeze``.

    Raises
    ------
    ValueError
        If ``kind`` is not numbered so, or has too few or too many classes.

    Latency
    -------
    A cycle is counted one cycle after its events.

    Cost
    ----
    4 flip-flops, a memory of 16 words with an asynchronous read port (look-up tables), another for their top bits, an
    incrementer.
    """

    events: data.View
    freeze: Signal
    counter: Signal
    top: Signal
    value: Signal

    def __init__(self, kind: type[Counter], bits: int) -> None:
        numbers = [counter.value for counter in kind]
        if numbers != list(range(len(numbers))):
            raise ValueError(f"{kind.__name__} has the numbers {numbers}; they must be 0, 1, 2, ...")
        if not 2 <= len(numbers) <= GROUP_COUNTERS:
            raise ValueError(f"{kind.__name__} has {len(numbers)} classes; it must have 2 to {GROUP_COUNTERS}")
        self._kind = kind
        self._bits = bits
        super().__init__(
            {
                "events": In(class_events(kind)),
                "freeze": In(1),
                "counter": In(range(GROUP_COUNTERS)),
                "top": Out(1),
                "value": Out(bits),
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

        m.submodules.counts = counts = Memory(shape=self._bits, depth=GROUP_COUNTERS, init=[])
        m.submodules.tops = tops = Memory(shape=1, depth=GROUP_COUNTERS, init=[])
        read = counts.read_port(domain="comb")
        seen = tops.read_port(domain="comb")
        following = Signal(self._bits)
        m.d.comb += [
            read.addr.eq(Mux(self.freeze, self.counter, now)),
            self.value.eq(read.data),
            following.eq(read.data + 1),
            seen.addr.eq(self.counter),
            self.top.eq(seen.data),
        ]
        for port, written in ((counts.write_port(), following), (tops.write_port(), following[-1])):
            m.d.comb += [port.addr.eq(now), port.data.eq(written), port.en.eq(~self.freeze)]
        return m
