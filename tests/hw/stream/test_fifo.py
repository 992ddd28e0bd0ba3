from collections.abc import Callable
from typing import Any

import pytest
from amaranth.lib import data

from sley.hw.stream.fifo import StreamFIFO
from sley.hw.testing.coverage import Coverage, stream_states, watch_streams
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench

COVERAGE = Coverage(
    "stream FIFO",
    {
        # The queue is full with an item in its output register.
        "input, output": stream_states(2, ("waits", "idle")),
        "items": ["none", "one", "some", "depth", "and one more"],
    },
)


@pytest.mark.parametrize("depth", [2, 3, 5, 16, 18, 32])
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.0, 0.6), (0.6, 0.0), (0.4, 0.4)])
def test_order(depth: int, idle: float, pause: float) -> None:
    bench = StreamBench(StreamFIFO(data.StructLayout({"a": 7, "b": 5}), depth), seed=depth)
    values = [(bench.rng.getrandbits(7), bench.rng.getrandbits(5)) for _ in range(120)]
    sent = bench.send(bench.dut.i, [{"a": a, "b": b} for a, b in values], idle=idle)
    got = bench.receive(bench.dut.o, len(values), pause=pause)

    async def level(ctx: Any) -> None:
        while True:
            before = len(sent.items) - len(got.items)
            _, _, value = await ctx.tick().sample(bench.dut.level)
            assert value == before <= depth + 1
            named = {0: "none", 1: "one", depth: "depth", depth + 1: "and one more"}
            COVERAGE.hit("items", named.get(value, "some"))

    bench.add(level)
    watch_streams(bench, COVERAGE, "input, output", bench.dut.i, bench.dut.o)
    bench.run()
    assert [(int(x.a), int(x.b)) for x in got.items] == values
    if idle == pause == 0:
        assert sent.cycles == list(range(1, 121))
        assert got.cycles == list(range(3, 123))


def test_capacity() -> None:
    bench = StreamBench(StreamFIFO(8, 7), timeout=50)
    sent = bench.send(bench.dut.i, range(20))
    bench.receive(bench.dut.o, 1, pause=1.0)
    with pytest.raises(AssertionError, match="50 cycles"):
        bench.run()
    assert sent.items == list(range(8))


def test_full_throughput_after_a_stall() -> None:
    """A full queue passes one item per cycle as soon as its sink does."""
    bench = StreamBench(StreamFIFO(8, 4), timeout=200)
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
    with rejects("depth is 1"):
        StreamFIFO(8, 1)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
