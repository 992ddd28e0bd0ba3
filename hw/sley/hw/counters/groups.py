"""Groups of counters that share one memory for their sums."""

from collections.abc import Iterable, Mapping

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.counters import COUNTER_BITS, COUNTERS, GROUP_COUNTERS, Counter, CounterGroup
from sley.hw.counters.amounts import AmountCounters, amount_layout
from sley.hw.counters.classes import ClassCounters, class_events
from sley.hw.counters.select import COUNTER_SELECT

_SUM = data.StructLayout({"sum": COUNTER_BITS, "top": 1})
"""What was counted until the last visit, without the low bits; their top bit at that visit."""


class CounterGroups(wiring.Component):
    """Groups of classes and of amounts.

    What counts every cycle is narrow: the low bits. A scan visits one counter a cycle, and when their top bit has
    fallen since the last visit it adds the carry to the counter's sum, a word of a block RAM, with one adder for all.
    While nothing counts, the scan stops, and the counter that is selected is visited without leaving anything.
    Neither sums, nor low bits, nor the scan is ever reset.

    Parameters
    ----------
    classes : iterable of CounterGroup
        Groups of classes.
    amounts : mapping of CounterGroup to mapping of Counter to int
        Groups of amounts, and bits of their amounts; 1 where nothing is given.

    Members
    -------
    GROUP_events : In(class_events(...)), for each group of classes
        Of this cycle.
    GROUP_amounts : In(amount_layout(...)), for each group of amounts
        Of this cycle.
    select : In(COUNTER_SELECT)
        The counter that is shown.
    value : Out(32)
        The counter that was chosen by ``select`` in the cycle before, if ``select`` froze then and in the cycle before
        that; 0 if it is not here.

    Cost
    ----
    A block RAM, an adder of 32 bits.
    """

    select: data.View
    value: Signal

    def __init__(self, classes: Iterable[CounterGroup], amounts: Mapping[CounterGroup, Mapping[Counter, int]]) -> None:
        self._classes = tuple(classes)
        self._amounts = dict(amounts)
        super().__init__(
            {
                **{f"{group.name.lower()}_events": In(class_events(COUNTERS[group])) for group in self._classes},
                **{
                    f"{group.name.lower()}_amounts": In(amount_layout(COUNTERS[group], widths))
                    for group, widths in self._amounts.items()
                },
                "select": In(COUNTER_SELECT),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        groups = (*self._classes, *self._amounts)
        # The number behind the last group's is that of all that are not here: words of zeros.
        number = Signal(range(len(groups) + 1))
        period = GROUP_COUNTERS << len(number)
        freeze = self.select.freeze
        scan = Signal(range(period), reset_less=True)
        place = Signal.like(scan)  # what is visited: counter and number of the group
        m.d.comb += number.eq(len(groups))
        with m.Switch(self.select.group):
            for k, group in enumerate(groups):
                with m.Case(group):
                    m.d.comb += number.eq(k)
        with m.If(~freeze):
            m.d.sync += scan.eq(scan + 1)
        m.d.comb += place.eq(Mux(freeze, Cat(self.select.counter, number), scan))
        counter, visited = place[: len(self.select.counter)], place[len(self.select.counter) :]

        # Between two visits a class moves by at most half of what its low bits can hold.
        low_bits = len(scan) + 1
        sums: list[AmountCounters] = []
        for group, widths in self._amounts.items():
            name = group.name.lower()
            m.submodules[name] = amounts = AmountCounters(COUNTERS[group], widths, period)
            m.d.comb += [
                amounts.amounts.eq(getattr(self, f"{name}_amounts")),
                amounts.freeze.eq(freeze),
                amounts.counter.eq(counter),
            ]
            sums.append(amounts)
        low, top = Signal(max(low_bits, *(len(s.value) for s in sums))), Signal()
        weight = Signal(len(low) + 1)
        m.d.comb += weight.eq(1 << low_bits)
        parts: list[ClassCounters] = []
        for group in self._classes:
            m.submodules[group.name.lower()] = part = ClassCounters(COUNTERS[group], low_bits)
            m.d.comb += [
                part.events.eq(getattr(self, f"{group.name.lower()}_events")),
                part.freeze.eq(freeze),
                part.counter.eq(counter),
            ]
            parts.append(part)
        with m.Switch(visited):
            for k, part in enumerate(parts):
                with m.Case(k):
                    m.d.comb += [low.eq(part.value), top.eq(part.top)]
            for k, amounts in enumerate(sums, len(parts)):
                with m.Case(k):
                    m.d.comb += [low.eq(amounts.value), top.eq(amounts.top), weight.eq(amounts.weight)]

        # In the cycle behind a visit.
        counted = Signal(reset_less=True)
        written = Signal.like(place, reset_less=True)
        shown = Signal.like(low, reset_less=True)
        high = Signal(reset_less=True)
        worth = Signal.like(weight, reset_less=True)
        m.d.sync += [counted.eq(~freeze), written.eq(place), shown.eq(low), high.eq(top), worth.eq(weight)]
        m.submodules.words = words = Memory(shape=_SUM, depth=period, init=[], attrs={"ram_style": "block"})
        read, write = words.read_port(domain="comb"), words.write_port()
        word = Signal(_SUM, reset_less=True)
        # Not the one that is being written: then it does not matter what a block RAM gives.
        with m.If(~(counted & (place == written))):
            m.d.sync += word.eq(read.data)
        carry = word.top & ~high
        total = Signal(COUNTER_BITS)
        m.d.comb += [
            read.addr.eq(place),
            total.eq(word.sum + (worth & carry.replicate(len(worth)))),
            write.addr.eq(written),
            write.data.sum.eq(total),
            write.data.top.eq(high),
            write.en.eq(counted),
            self.value.eq(total | shown),
        ]
        return m
