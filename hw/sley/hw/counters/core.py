"""All performance counters of a core."""

from amaranth.lib import data

from sley.abi.counters import UNIT_GROUPS, Counter, CounterGroup, Traffic
from sley.hw.counters.groups import CounterGroups
from sley.hw.memory.run import RUN_BYTES_BITS

WIDTHS: dict[Counter, int] = {Traffic.LOAD_BYTES: RUN_BYTES_BITS, Traffic.STORE_BYTES: RUN_BYTES_BITS}


class CoreCounters(CounterGroups):
    """Counts what the units of a core do, and what moves between the core and memory.

    Members
    -------
    sequencer_events, load_events, store_events, matrix_events, vector_events : In(class_events(...))
        Of the unit's classes; see ``sley.abi.counters``.
    traffic_amounts : In(amount_layout(Traffic, WIDTHS))
        Bytes and runs of this cycle.
    select : In(COUNTER_SELECT), value : Out(32)
        As of ``CounterGroups``.
    """

    sequencer_events: data.View
    load_events: data.View
    store_events: data.View
    matrix_events: data.View
    vector_events: data.View
    traffic_amounts: data.View

    def __init__(self) -> None:
        super().__init__(UNIT_GROUPS, CounterGroup.TRAFFIC, WIDTHS)
