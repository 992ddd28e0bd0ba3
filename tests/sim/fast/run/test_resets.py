"""Resets and clocks: where both simulators agree, and where RTLIL means something else."""

import random
from typing import Any

import pytest
from amaranth.hdl import (
    Cat,
    ClockDomain,
    Module,
    Print,
    Signal,
)
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from sley.sim.fast.run.simulation import Simulation


class Resets(wiring.Component):
    """What means something else in RTLIL than in Amaranth's simulator, as the guide's table says."""

    clock: In(1)
    reset: In(1)
    read: Out(8)
    kept: Out(8)

    def __init__(self, asynchronous: bool) -> None:
        self.asynchronous = asynchronous
        self.store = memory.Memory(shape=8, depth=2, init=[11, 12])
        super().__init__()

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.domains.sync = domain = ClockDomain(async_reset=self.asynchronous)
        m.submodules.store = store = self.store
        port, write, first = store.read_port(), store.write_port(), Signal(init=1)
        m.d.comb += [write.addr.eq(1), write.data.eq(77), write.en.eq(self.reset)]
        with m.If(self.reset):
            m.d.sync += Print("in reset")
        kept = Signal(8, reset_less=True)
        m.d.sync += [kept.eq(kept + 1), first.eq(0)]
        m.d.comb += [domain.clk.eq(self.clock), domain.rst.eq(self.reset)]
        m.d.comb += [port.en.eq(first & ~self.reset), self.read.eq(port.data), self.kept.eq(kept)]
        return m


def test_registers_alike_but_for_their_clocks() -> None:
    """Side by side, with the same expression and names that differ in a number: each takes the edges of its own."""
    m = Module()
    domains = [ClockDomain(name, reset_less=True) for name in ("even", "odd")]
    m.domains += domains
    a, o = Signal(8), Signal(16 * 8)
    registers = [Signal(8, name=f"lane_{k}", init=k) for k in range(16)]
    for k, register in enumerate(registers):
        m.d[("even", "odd")[k % 2]] += register.eq((register ^ a) + 3)
    m.d.comb += o.eq(Cat(registers))
    simulation = Simulation.of(m, {"a": a, "o": o, **{f"{domain.name}_clk": domain.clk for domain in domains}})
    expected = list(range(16))
    source = random.Random(2)
    for _ in range(20):
        value, clocks = source.getrandbits(8), source.choice([["even_clk"], ["odd_clk"], ["even_clk", "odd_clk"]])
        simulation.poke("a", value)
        simulation.tick(*clocks)
        for k in range(16):
            if ("even_clk", "odd_clk")[k % 2] in clocks:
                expected[k] = ((expected[k] ^ value) + 3) & 0xFF
        assert simulation.peek("o") == sum(number << 8 * k for k, number in enumerate(expected))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_where_rtlil_means_something_else(asynchronous: bool, capsys: pytest.CaptureFixture[str]) -> None:
    design, simulation = Resets(asynchronous), Simulation.of(Resets(asynchronous))
    printed: list[str] = []
    simulation.on_print = printed.append

    async def bench(ctx: Any) -> None:
        def tick() -> None:
            simulation.tick("clock")
            ctx.set(design.clock, 1)
            ctx.set(design.clock, 0)

        tick()
        assert (simulation.peek("read"), ctx.get(design.read)) == (11, 11)
        assert (simulation.peek("kept"), ctx.get(design.kept)) == (1, 1)
        simulation.poke("reset", 1)
        ctx.set(design.reset, 1)
        assert (simulation.peek("kept"), ctx.get(design.kept)) == (1, 2 if asynchronous else 1)
        rows = simulation.peek_memory("top.store", 1), ctx.get(design.store.data[1])
        assert rows == (12, 77 if asynchronous else 12)
        assert (len(printed), capsys.readouterr().out.count("in reset")) == (0, int(asynchronous))
        tick()
        assert (simulation.peek_memory("top.store", 1), ctx.get(design.store.data[1])) == (77, 77)
        assert (len(printed), capsys.readouterr().out.count("in reset")) == (1, 1)
        assert (simulation.peek("read"), ctx.get(design.read)) == (11, 0)

    simulator = Simulator(design)
    simulator.add_testbench(bench)
    simulator.run()


class WiredClock(wiring.Component):
    """Two domains on one clock, which reaches the second through a signal of a submodule."""

    clock: In(1)
    first: Out(8)
    second: Out(8)

    def elaborate(self, platform: Any) -> Module:
        m, inner, wire = Module(), Module(), Signal()
        m.domains.one = one = ClockDomain(reset_less=True)
        inner.domains.two = two = ClockDomain(reset_less=True)
        m.submodules.inner = inner
        m.d.comb += one.clk.eq(self.clock)
        inner.d.comb += [wire.eq(self.clock), two.clk.eq(wire)]
        m.d.one += self.first.eq(self.first + 1)
        inner.d.two += self.second.eq(self.first)
        return m


def test_a_clock_through_a_signal() -> None:
    """In Amaranth's simulator it comes later than what registers of the same edge have become; in RTLIL it does not."""
    design, simulation = WiredClock(), Simulation.of(WiredClock())

    async def bench(ctx: Any) -> None:
        for cycle in range(1, 4):
            simulation.tick("clock")
            ctx.set(design.clock, 1)
            ctx.set(design.clock, 0)
            assert (simulation.peek("first"), ctx.get(design.first)) == (cycle, cycle)
            assert (simulation.peek("second"), ctx.get(design.second)) == (cycle - 1, cycle)

    simulator = Simulator(design)
    simulator.add_testbench(bench)
    simulator.run()
