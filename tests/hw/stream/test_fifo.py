import random
from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import data
from amaranth.sim import Simulator

from sley.hw.stream.fifo import StreamFIFO
from sley.hw.stream.prefetch import PrefetchFIFO
from sley.hw.stream.wide import WideFIFO
from sley.hw.testing.coverage import Coverage, stream_states, watch_streams
from sley.hw.testing.parameters import rejects
from sley.hw.testing.simulation.engine import QuickEngine
from sley.hw.testing.streams import StreamBench

COVERAGE = Coverage(
    "stream FIFO",
    {
        # The queue is full with items in the registers behind it.
        "input, output": stream_states(2, ("waits", "idle")),
        "items": ["none", "one", "some", "depth", "and more"],
    },
)


QUEUES = pytest.mark.parametrize("queue", [StreamFIFO, PrefetchFIFO, WideFIFO])


@pytest.mark.some(36)
@QUEUES
@pytest.mark.parametrize("more", [0, 1, 3, 14, 16, 30])
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.0, 0.6), (0.6, 0.0), (0.4, 0.4)])
def test_order(queue: type[StreamFIFO], more: int, idle: float, pause: float) -> None:
    depth = queue.least + more
    bench = StreamBench(queue(data.StructLayout({"a": 7, "b": 5}), depth), seed=depth)
    values = [(bench.rng.getrandbits(7), bench.rng.getrandbits(5)) for _ in range(120)]
    sent = bench.send(bench.dut.i, [{"a": a, "b": b} for a, b in values], idle=idle)
    got = bench.receive(bench.dut.o, len(values), pause=pause)

    async def level(ctx: Any) -> None:
        while True:
            before = len(sent.items) - len(got.items)
            _, _, value = await ctx.tick().sample(bench.dut.level)
            assert value == before <= depth + queue.held_outside
            named = {0: "none", 1: "one", depth: "depth", depth + queue.held_outside: "and more"}
            COVERAGE.hit("items", named.get(value, "some"))

    bench.add(level)
    watch_streams(bench, COVERAGE, "input, output", bench.dut.i, bench.dut.o)
    bench.run()
    assert [(int(x.a), int(x.b)) for x in got.items] == values
    if idle == pause == 0:
        assert sent.cycles == list(range(1, 121))
        assert got.cycles == list(range(3, 123))


@pytest.mark.parametrize(("queue", "depth"), [(PrefetchFIFO, 5), (WideFIFO, 7)])
def test_same_cycles(queue: type[StreamFIFO], depth: int) -> None:
    """A queue beside a ``StreamFIFO`` that holds as many items: the same outputs in every cycle."""
    m = Module()
    m.submodules.plain = plain = StreamFIFO(8, 6)
    m.submodules.dut = dut = queue(8, depth)
    m.d.comb += [plain.i.valid.eq(dut.i.valid), plain.i.payload.eq(dut.i.payload), plain.o.ready.eq(dut.o.ready)]
    rng = random.Random(0)

    async def drive(ctx: Any) -> None:
        for _ in range(60):
            idle, pause = rng.choice([0.0, 0.2, 0.9]), rng.choice([0.0, 0.2, 0.9])
            for _ in range(40):
                ctx.set(dut.i.valid, rng.random() >= idle)
                ctx.set(dut.i.payload, rng.getrandbits(8))
                ctx.set(dut.o.ready, rng.random() >= pause)
                pairs = [(dut.i.ready, plain.i.ready), (dut.o.valid, plain.o.valid), (dut.level, plain.level)]
                assert all(ctx.get(left) == ctx.get(right) for left, right in [*pairs, (dut.empty, plain.empty)])
                assert not ctx.get(dut.o.valid) or ctx.get(dut.o.payload) == ctx.get(plain.o.payload)
                await ctx.tick()

    simulator = Simulator(m, engine=QuickEngine)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()


@QUEUES
def test_capacity(queue: type[StreamFIFO]) -> None:
    bench = StreamBench(queue(8, 7), timeout=50)
    sent = bench.send(bench.dut.i, range(20))
    bench.receive(bench.dut.o, 1, pause=1.0)
    with pytest.raises(AssertionError, match="50 cycles"):
        bench.run()
    assert sent.items == list(range(7 + queue.held_outside))


@QUEUES
def test_full_throughput_after_a_stall(queue: type[StreamFIFO]) -> None:
    """A full queue passes one item per cycle as soon as its sink does."""
    bench = StreamBench(queue(8, 4), timeout=200)
    bench.send(bench.dut.i, range(40))
    got: list[int] = []

    async def sink(ctx: Any) -> None:
        await ctx.tick().repeat(20)
        ctx.set(bench.dut.o.ready, 1)
        start = bench.cycle
        while len(got) < 40:
            _, _, valid, payload = await ctx.tick().sample(bench.dut.o.valid, bench.dut.o.payload)
            if valid:
                got.append(payload)
        assert bench.cycle - start == 40

    bench.add(sink, wait=True)
    bench.run()
    assert got == list(range(40))


def test_parameters() -> None:
    with rejects("depth is 1; .* at least 2"):
        StreamFIFO(8, 1)
    with rejects("depth is 2; .* at least 3"):
        WideFIFO(8, 2)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
