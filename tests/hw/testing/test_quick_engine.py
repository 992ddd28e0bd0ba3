"""The engine of the benches against Amaranth's own, on random designs and by what testbenches can do."""

from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Cat, ClockDomain, Const, DriverConflict, Module, Signal, signed
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator
from design_batch import Batch
from lockstep import on_pysim, stimulus
from random_designs import design_source

from sley.hw.testing.simulation.engine import QuickEngine

ENGINES = ["pysim", QuickEngine]


@pytest.mark.parametrize(
    "first", [7_000, 7_016, *(pytest.param(7_032 + 16 * batch, marks=pytest.mark.slow) for batch in range(20))]
)
def test_random_designs(first: int) -> None:
    """Clocks of both edges, resets of both kinds, memories, and what is printed."""
    batch = Batch({f"d{seed}": design_source(seed) for seed in range(first, first + 16)})
    steps = stimulus(batch, first)
    expected, got = (on_pysim(batch, steps, engine) for engine in ENGINES)
    for (when, values), (_, found) in zip(expected, got, strict=True):
        assert {name: (value, found.get(name)) for name, value in values.items() if value != found.get(name)} == {}, (
            when
        )
    assert len({str(values) for _, values in expected}) > len(steps)


def seen_by_testbenches(engine: Any, vcd: Path) -> list[Any]:
    """What testbenches get that set, look, and wait for an edge, a change and a time, twice from reset."""
    a, b, total, below, row = Signal(4), Signal(signed(4)), Signal(signed(8)), Signal(8, init=3), Signal(4)
    m = Module()
    m.submodules.memory = memory = Memory(shape=4, depth=4, init=[5, 6])
    write, read = memory.write_port(), memory.read_port(domain="comb")
    m.d.comb += [total.eq(a + b), write.addr.eq(1), write.data.eq(a), read.addr.eq(1), row.eq(read.data)]
    held = Signal(4)
    m.d.sync += [below.eq(below + 1), held.eq(a)]
    seen: list[Any] = []

    async def first(ctx: Any) -> None:
        ctx.set(Cat(a, b), 0xF7)
        ctx.set(write.en, 1)
        seen.append((ctx.get(total), ctx.get(b), ctx.get(row)))
        seen.append([ctx.get(part) for part in (total[1:5], b[1:], b[1:][1:], Cat(a, b)[3:7], Const(5, 4)[1:])])
        seen.append(await ctx.tick().sample(total, below, row))
        ctx.set(below, 9)
        ctx.set(held, 1)
        ctx.set(b, 2)
        seen.append((await ctx.tick().sample(total, below, row, held), ctx.get(held)))
        await ctx.delay(0.1e-6)
        ctx.set(b[1:], 1)
        with pytest.raises(DriverConflict):
            ctx.set(total, 1)

    async def second(ctx: Any) -> None:
        async for _, _, *values in ctx.tick().sample(below, b):
            seen.append((*values, ctx.get(total + 1)))

    async def third(ctx: Any) -> None:
        seen.append(await ctx.changed(total))
        seen.append((await ctx.posedge(below[3]), ctx.get(below)))

    simulator = Simulator(m, engine=engine)
    simulator.add_clock(1e-6)
    for testbench in (first, second, third):
        simulator.add_testbench(testbench)
    simulator.run_until(3.2e-6)
    once = list(seen)
    simulator.reset()
    with simulator.write_vcd(str(vcd)):
        simulator.run_until(3.2e-6)
    assert seen == 2 * once
    return once


def waveform(vcd: Path) -> dict[str, dict[str, str]]:
    """Values by the names of their signals at the end of each moment."""
    moment, names, values = "", dict[str, str](), dict[str, dict[str, str]]()
    for line in vcd.read_text().splitlines():
        if line.startswith("$var"):
            _, _, _, short, name, *_ = line.split()
            names[short] = name
        elif line.startswith("#"):
            moment = line
            values[moment] = {}
        elif line[:1] in ("0", "1"):
            values[moment][names[line[1:]]] = line[0]
        elif line.startswith("b"):
            value, short = line.split()
            values[moment][names[short]] = value
    return values


def test_testbenches_see_the_same(tmp_path: Path) -> None:
    """Samples are those before the edge, and what one testbench sets the next one sees, through logic and memories."""
    files = tmp_path / "reference.vcd", tmp_path / "quick.vcd"
    reference, quick = (seen_by_testbenches(engine, file) for engine, file in zip(ENGINES, files, strict=True))
    assert quick == reference
    assert len(reference) > 6
    expected, shown = map(waveform, files)
    moving = {moment for moment, values in expected.items() if values}
    assert {moment: shown[moment] for moment in moving} == {moment: expected[moment] for moment in moving}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_reset_without_a_clock(engine: Any) -> None:
    domain, count, reset = ClockDomain("other", async_reset=True), Signal(4, init=5), Signal()
    m = Module()
    m.domains += domain
    m.d.comb += domain.rst.eq(reset)
    m.d.other += count.eq(count + 1)
    seen = []

    async def bench(ctx: Any) -> None:
        await ctx.tick("other").repeat(3)
        seen.append(ctx.get(count))
        ctx.set(reset, 1)
        seen.append(ctx.get(count))
        await ctx.tick("other")
        ctx.set(reset, 0)
        await ctx.tick("other")
        seen.append(ctx.get(count))

    simulator = Simulator(m, engine=engine)
    simulator.add_clock(1e-6, domain="other")
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [8, 5, 6]


@pytest.mark.parametrize("engine", ENGINES)
def test_logic_that_goes_in_circles(engine: Any) -> None:
    """Two modules with paths both ways, and a latch of two gates."""
    m, left, right = Module(), Module(), Module()
    m.submodules.left, m.submodules.right = left, right
    set_, clear, q, nq, x, y, z = (
        Signal(name=name, init=name == "set") for name in ("set", "clear", "q", "nq", "x", "y", "z")
    )
    left.d.comb += [x.eq(set_), z.eq(~y), q.eq(~(clear | nq))]
    right.d.comb += [y.eq(x), nq.eq(~(set_ | q))]
    seen = []

    async def bench(ctx: Any) -> None:
        for values in ((1, 0), (0, 0), (0, 1), (0, 0)):
            ctx.set(Cat(set_, clear), values[0] | values[1] << 1)
            seen.append((ctx.get(q), ctx.get(z)))

    simulator = Simulator(m, engine=engine)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [(1, 0), (1, 1), (0, 1), (0, 1)]
