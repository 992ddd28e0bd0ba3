"""Performance counters of the memory bus."""

from typing import Any

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.counters import COUNTER_BITS, Bus, CounterGroup, ReadCycle, WriteCycle
from sley.hw.counters.amounts import AmountCounters
from sley.hw.counters.classes import ClassCounters
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

    Members
    -------
    axi : In(BUS_EVENTS)
    select : In(COUNTER_SELECT)
    value : Out(32)
        The counter chosen by ``select`` while it freezes; 0 if it is not of the bus. Combinational.

    A burst is outstanding from the cycle in which its address is offered to that of its last beat or its answer.
    Cost: four memories of 16 x 32 bits in look-up tables, three adders of 32 bits, about 50 flip-flops.
    """

    axi: data.View
    select: data.View
    value: Signal

    def __init__(self) -> None:
        super().__init__({"axi": In(BUS_EVENTS), "select": In(COUNTER_SELECT), "value": Out(COUNTER_BITS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.read = read = ClassCounters(ReadCycle)
        m.submodules.write = write = ClassCounters(WriteCycle)
        m.submodules.bus = bus = AmountCounters(Bus, {})
        axi = Signal(BUS_EVENTS)
        m.d.sync += axi.eq(self.axi)
        reads = Signal(OUTSTANDING_BITS)
        writes = Signal(OUTSTANDING_BITS)
        m.d.comb += [
            bus.amounts.cycles.eq(1),
            bus.amounts.read_bursts.eq(axi.arvalid & axi.arready),
            bus.amounts.write_bursts.eq(axi.awvalid & axi.awready),
            read.events.beat.eq(axi.rvalid & axi.rready),
            read.events.refused.eq(axi.rvalid),
            read.events.wait.eq(axi.arvalid | (reads != 0)),
            write.events.beat.eq(axi.wvalid & axi.wready),
            write.events.refused.eq(axi.wvalid),
            write.events.wait.eq(axi.awvalid | (writes != 0)),
        ]
        m.d.sync += [
            reads.eq(reads + bus.amounts.read_bursts - (read.events.beat & axi.rlast)),
            writes.eq(writes + bus.amounts.write_bursts - (axi.bvalid & axi.bready)),
        ]
        parts: dict[CounterGroup, Any] = {
            CounterGroup.READ: read,
            CounterGroup.WRITE: write,
            CounterGroup.BUS: bus,
        }
        for part in parts.values():
            m.d.comb += [part.freeze.eq(self.select.freeze), part.counter.eq(self.select.counter)]
        with m.Switch(self.select.group):
            for group, part in parts.items():
                with m.Case(group):
                    m.d.comb += self.value.eq(part.value)
        return m
