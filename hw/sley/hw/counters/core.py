"""All performance counters of a core."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.counters import COUNTER_BITS, COUNTERS, UNIT_GROUPS, Counter, CounterGroup, Traffic
from sley.hw.counters.amounts import AmountCounters, amount_layout
from sley.hw.counters.classes import ClassCounters, class_events
from sley.hw.counters.select import COUNTER_SELECT
from sley.hw.memory.run import RUN_BYTES_BITS

WIDTHS: dict[Counter, int] = {Traffic.LOAD_BYTES: RUN_BYTES_BITS, Traffic.STORE_BYTES: RUN_BYTES_BITS}


class CoreCounters(wiring.Component):
    """Counts what the units of a core do, and what moves between the core and memory.

    Members
    -------
    sequencer_events, load_events, store_events, matrix_events, vector_events : In(class_events(...))
        Of the unit's classes; see ``sley.abi.counters``.
    traffic_amounts : In(amount_layout(Traffic, WIDTHS))
    select : In(COUNTER_SELECT)
    value : Out(32)
        The counter chosen by ``select`` while it freezes; 0 if a core has none of that group. Combinational.

    Cost: seven memories of 16 x 32 bits in look-up tables, six adders of 32 bits, about 180 flip-flops.
    """

    sequencer_events: data.View
    load_events: data.View
    store_events: data.View
    matrix_events: data.View
    vector_events: data.View
    traffic_amounts: data.View
    select: data.View
    value: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                **{f"{group.name.lower()}_events": In(class_events(COUNTERS[group])) for group in UNIT_GROUPS},
                "traffic_amounts": In(amount_layout(Traffic, WIDTHS)),
                "select": In(COUNTER_SELECT),
                "value": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parts: dict[CounterGroup, Any] = {group: ClassCounters(COUNTERS[group]) for group in UNIT_GROUPS}
        for group, part in parts.items():
            m.d.comb += part.events.eq(getattr(self, f"{group.name.lower()}_events"))
        parts[CounterGroup.TRAFFIC] = traffic = AmountCounters(Traffic, WIDTHS)
        m.d.comb += traffic.amounts.eq(self.traffic_amounts)
        for group, part in parts.items():
            m.submodules[group.name.lower()] = part
            m.d.comb += [part.freeze.eq(self.select.freeze), part.counter.eq(self.select.counter)]
        with m.Switch(self.select.group):
            for group, part in parts.items():
                with m.Case(group):
                    m.d.comb += self.value.eq(part.value)
        return m
