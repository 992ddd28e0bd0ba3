"""All performance counters of a core."""

from collections.abc import Mapping

from amaranth.lib import data

from sley.abi.counters import UNIT_GROUPS, Counter, CounterGroup, Rows, Traffic
from sley.hw.counters.groups import CounterGroups
from sley.hw.memory.run import RUN_BYTES_BITS

MOST_PORTS = 6
"""Readers of the accumulators, and no other ports are more."""
WIDTHS: dict[CounterGroup, Mapping[Counter, int]] = {
    CounterGroup.TRAFFIC: {Traffic.LOAD_BYTES: RUN_BYTES_BITS, Traffic.STORE_BYTES: RUN_BYTES_BITS},
    CounterGroup.ROWS: dict.fromkeys(Rows, MOST_PORTS.bit_length()),
}


class CoreCounters(CounterGroups):
    """Counts what the units of a core do, and what moves between the core and memory.

    Members
    -------
    sequencer_events, load_events, store_events, matrix_events, vector_events : In(class_events(...))
        Of the unit's classes; see ``sley.abi.counters``.
    traffic_amounts : In(amount_layout(Traffic, ...))
        Bytes and runs of this cycle.
    rows_amounts : In(amount_layout(Rows, ...))
        Accesses of the memories.
    select : In(COUNTER_SELECT), value : Out(32)
        As of ``CounterGroups``.
    """

    sequencer_events: data.View
    load_events: data.View
    store_events: data.View
    matrix_events: data.View
    vector_events: data.View
    traffic_amounts: data.View
    rows_amounts: data.View

    def __init__(self) -> None:
        super().__init__(UNIT_GROUPS, WIDTHS)
