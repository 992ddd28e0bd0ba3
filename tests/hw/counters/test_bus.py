"""Counters of the memory bus against a bus that this bench makes up."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from sley.abi.counters import CHIP_GROUPS, COUNTERS, GROUP_COUNTERS, Bus, CounterGroup, ReadCycle, WriteCycle
from sley.hw.counters.bus import BUS_EVENTS, BusCounters
from sley.hw.testing.simulation.engine import QuickEngine


class Side:
    """One direction of the bus, by what its cycles are: beats move, are refused, are waited for, or nothing is open."""

    def __init__(self, kind: Any) -> None:
        self.kind, self.open, self.bursts = kind, 0, 0
        self.counts = dict.fromkeys(kind, 0)

    def cycle(self, valid: int, ready: int, opens: bool, opened: bool, closes: bool) -> None:
        moves = self.kind.BEAT if ready else self.kind.REFUSED
        rests = self.kind.WAIT if self.open or opens else self.kind.IDLE
        self.counts[moves if valid else rests] += 1
        self.bursts += opened
        self.open += opened - closes


@pytest.mark.parametrize("busy", [0.1, 0.5, 0.9])
def test_random_bus(busy: float) -> None:
    dut = BusCounters()
    rng = random.Random(busy)

    async def bench(ctx: Any) -> None:
        read, write = Side(ReadCycle), Side(WriteCycle)
        for _ in range(600):
            axi = {name: int(rng.random() < busy) for name in BUS_EVENTS.members}
            if not read.open:
                axi["rvalid"] = 0
            if not write.open:
                axi["bvalid"] = 0
            if read.open + write.open > 60:
                axi["arvalid"] = axi["awvalid"] = 0
            ctx.set(dut.axi, axi)
            await ctx.tick()
            fires = {c: bool(axi[f"{c}valid"] and axi[f"{c}ready"]) for c in ("ar", "r", "aw", "w", "b")}
            read.cycle(axi["rvalid"], axi["rready"], bool(axi["arvalid"]), fires["ar"], fires["r"] and axi["rlast"])
            write.cycle(axi["wvalid"], axi["wready"], bool(axi["awvalid"]), fires["aw"], fires["b"])
        ctx.set(dut.axi, {})
        await ctx.tick().repeat(2)  # counted are two idle cycles of the start, not yet these two
        ctx.set(dut.select.freeze, 1)
        await ctx.tick().repeat(GROUP_COUNTERS)
        found: dict[CounterGroup, list[int]] = {}
        for group in CHIP_GROUPS:
            found[group] = []
            for counter in COUNTERS[group]:
                ctx.set(dut.select.group, group)
                ctx.set(dut.select.counter, counter)
                await ctx.tick()
                found[group].append(ctx.get(dut.value))
        read.counts[ReadCycle.IDLE] += 2
        write.counts[WriteCycle.IDLE] += 2
        assert found[CounterGroup.READ] == list(read.counts.values())
        assert found[CounterGroup.WRITE] == list(write.counts.values())
        assert found[CounterGroup.BUS][Bus.READ_BURSTS] == read.bursts > 0
        assert found[CounterGroup.BUS][Bus.WRITE_BURSTS] == write.bursts > 0
        # The clock's first cycle after power-on is the only one it misses.
        assert found[CounterGroup.BUS][Bus.CYCLES] == sum(read.counts.values()) - 1
        ctx.set(dut.select.group, CounterGroup.LOAD)
        await ctx.tick()
        assert ctx.get(dut.value) == 0

    simulator = Simulator(dut, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
