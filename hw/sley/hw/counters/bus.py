"""Performance counters of the memory bus."""

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.counters import COUNTER_BITS, CounterGroup
from sley.hw.counters.groups import CounterGroups
from sley.hw.counters.select import COUNTER_SELECT

OUTSTANDING_BITS = 8
"""The memory port has at most 128 reads and 64 writes in flight."""

BUS_EVENTS = data.StructLayout(
    {
        name: 1
        for name in (
            *("arvalid", "arready", "rvalid", "rready", "rlast"),
            *("awvalid", "awready", "wvalid", "wready", "bvalid", "bready"),
        )
    }
)
"""Signals of an AXI4 bus."""


class BusCounters(wiring.Component):
    """Watches an AXI4 bus and counts; it drives nothing.

    A burst is outstanding from the cycle in which its address is offered to that of its last beat or its answer.

    Members
    -------
    axi : In(BUS_EVENTS)
        The bus.
    select : In(COUNTER_SELECT), value : Out(32)
        As of ``CounterGroups``.
    """

    axi: data.View
    select: data.View
    value: Signal

    def __init__(self) -> None:
        super().__init__({"axi": In(BUS_EVENTS), "select": In(COUNTER_SELECT), "value": Out(COUNTER_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.groups = groups = CounterGroups((CounterGroup.READ, CounterGroup.WRITE), {CounterGroup.BUS: {}})
        read, write, bus = groups.read_events, groups.write_events, groups.bus_amounts
        axi = Signal(BUS_EVENTS)
        m.d.sync += axi.eq(self.axi)
        reads = Signal(OUTSTANDING_BITS)
        writes = Signal(OUTSTANDING_BITS)
        m.d.comb += [
            bus.cycles.eq(1),
            bus.read_bursts.eq(axi.arvalid & axi.arready),
            bus.write_bursts.eq(axi.awvalid & axi.awready),
            read.beat.eq(axi.rvalid & axi.rready),
            read.refused.eq(axi.rvalid),
            read.wait.eq(axi.arvalid | (reads != 0)),
            write.beat.eq(axi.wvalid & axi.wready),
            write.refused.eq(axi.wvalid),
            write.wait.eq(axi.awvalid | (writes != 0)),
        ]
        m.d.sync += [
            reads.eq(reads + bus.read_bursts - (read.beat & axi.rlast)),
            writes.eq(writes + bus.write_bursts - (axi.bvalid & axi.bready)),
        ]
        m.d.comb += [groups.select.eq(self.select), self.value.eq(groups.value)]
        return m
