from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from amaranth.lib import data

from sley.hw.stream.arbiter import PacketArbiter
from sley.hw.testing.coverage import Coverage
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench

FLIT = data.StructLayout({"source": 3, "packet": 8, "index": 4, "last": 1})


def packets(source: int, lengths: list[int]) -> list[dict[str, int]]:
    return [
        {"source": source, "packet": p, "index": k, "last": k == n - 1} for p, n in enumerate(lengths) for k in range(n)
    ]


COVERAGE = Coverage(
    "packet arbiter",
    {
        "inputs that ask at once": range(6),
        "flits of a packet": range(1, 7),
        "inside a packet": ["it goes on", "it waits and nobody asks", "it waits and others ask"],
        "output": ["idle", "moves", "waits"],
    },
)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.5, 0.2), (0.1, 0.6)])
def test_whole_packets(n: int, idle: float, pause: float) -> None:
    bench = StreamBench(PacketArbiter(FLIT, n), seed=n)
    lengths = [[bench.rng.randint(1, 6) for _ in range(15)] for _ in range(n)]
    expected = [packets(k, lengths[k]) for k in range(n)]
    for k in range(n):
        bench.send(bench.dut.i[k], expected[k], idle=idle)
    got = bench.receive(bench.dut.o, sum(map(sum, lengths)), pause=pause)
    for length in (length for of_one in lengths for length in of_one):
        COVERAGE.hit("flits of a packet", length)

    async def watch(ctx: Any) -> None:
        owner: int | None = None
        while True:
            i, o = bench.dut.i, bench.dut.o
            values = await ctx.tick().sample(
                o.valid, o.ready, *(b for s in i for b in (s.valid, s.ready, s.payload.last))
            )
            (valid, ready), inputs = values[2:4], [values[k : k + 3] for k in range(4, len(values), 3)]
            asking = {k for k, (asks, *_) in enumerate(inputs) if asks}
            COVERAGE.hit("inputs that ask at once", len(asking))
            COVERAGE.hit("output", ("moves" if ready else "waits") if valid else "idle")
            if owner in asking:
                COVERAGE.hit("inside a packet", "it goes on")
            elif owner is not None:
                COVERAGE.hit("inside a packet", f"it waits and {'others ask' if asking else 'nobody asks'}")
            for k, (asks, takes, last) in enumerate(inputs):
                if asks and takes:
                    owner = None if last else k

    bench.add(watch)
    bench.run()
    flits = [{f: int(x[f]) for f in ("source", "packet", "index", "last")} for x in got.items]
    for k in range(n):
        assert [f for f in flits if f["source"] == k] == expected[k]
    for a, b in pairwise(flits):
        assert a["last"] or (a["source"], a["packet"]) == (b["source"], b["packet"]), "packets interleaved"
    if idle == pause == 0:
        assert got.cycles == list(range(got.cycles[0], got.cycles[0] + len(flits))), "gap between packets"


def test_fair() -> None:
    """With everyone asking, grants go round; the order is fixed."""
    bench = StreamBench(PacketArbiter(FLIT, 3))
    for k in range(3):
        bench.send(bench.dut.i[k], packets(k, [2] * 6))
    got = bench.receive(bench.dut.o, 36)
    bench.run()
    assert [int(x.source) for x in got.items] == [0, 0, 1, 1, 2, 2] * 6


def test_turns() -> None:
    """An input with turns sends so many packets in a row, but only if they are there; all others go round as ever."""
    bench = StreamBench(PacketArbiter(FLIT, 3, (1, 3, 1)))
    for k in range(3):
        bench.send(bench.dut.i[k], packets(k, [2] * 6))
    got = bench.receive(bench.dut.o, 36)
    bench.run()
    order = [int(x.source) for x in got.items][::2]
    assert order == [0, 1, 1, 1, 2, 0, 1, 1, 1, 2, 0, 2, 0, 2, 0, 2, 0, 2]
    assert got.cycles == list(range(got.cycles[0], got.cycles[0] + 36))


def test_turns_end_when_nothing_is_asked() -> None:
    bench = StreamBench(PacketArbiter(FLIT, 2, (4, 1)), seed=3)
    bench.send(bench.dut.i[0], packets(0, [1] * 30), idle=0.5)
    bench.send(bench.dut.i[1], packets(1, [3] * 10))
    got = bench.receive(bench.dut.o, 60)
    bench.run()
    assert sorted(int(x.source) for x in got.items) == [0] * 30 + [1] * 30


def test_parameters() -> None:
    with rejects(r"turns is \(1, 0\)"):
        PacketArbiter(FLIT, 2, (1, 0)).elaborate(None)
    with rejects("n is 0"):
        PacketArbiter(FLIT, 0)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
