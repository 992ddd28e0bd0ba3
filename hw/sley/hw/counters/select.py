"""How a counter is chosen and shown."""

from amaranth.lib import data

from sley.abi.counters import GROUP_COUNTERS, CounterGroup

COUNTER_SELECT = data.StructLayout({"freeze": 1, "counter": range(GROUP_COUNTERS), "group": CounterGroup})
"""``freeze``: nothing counts in this cycle, and ``counter`` of ``group`` is shown."""
