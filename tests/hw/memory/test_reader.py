import random
from collections.abc import Callable
from typing import Any

import pytest
from runs_bench import EDGE, LANES, MEETINGS, NANO, count_lanes, meeting_runs, random_runs

from sley.abi.config import ChipConfig, preset
from sley.abi.instructions import Share
from sley.abi.network import Tag
from sley.hw.memory.reader import MemoryReader
from sley.hw.testing.coverage import STREAM_STATES, Coverage, stream_states, watch_streams
from sley.hw.testing.meetings import count_meetings, every_pair, meetings
from sley.hw.testing.memory import Burst, MemoryNode
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench, compiled

COVERAGE = Coverage(
    "memory reader",
    {
        **LANES,
        "burst of": range(1, 5),
        "bursts of a run": ("one", "several"),
        "error": (True, False),
        "joined at": ("a beat's end", "in a beat"),
        "joined run of": ("no new beat", "one", "several"),
        "next of more": ("joins", "does not"),
        "meets": meetings(MEETINGS),
        "run, beat": stream_states(2),
        # It asks for what it has room for alone: answers do not wait.
        "request, answer": [(request, answer) for request in STREAM_STATES for answer in STREAM_STATES[:2]],
    },
)


def bench_of(config: ChipConfig, runs: list[tuple[int, int]], **kwargs: Any) -> tuple[StreamBench, MemoryNode, Any]:
    """A reader on a memory of random bytes; returns also the expected beats as (data, last)."""
    bench = StreamBench(compiled(MemoryReader, config, tag=Tag.LOAD, source=(2, 0), **kwargs.pop("reader", {})), seed=7)
    send = kwargs.pop("send", [{"addr": a, "bytes": n} for a, n in runs])
    bench.send(bench.dut.i, send, idle=kwargs.pop("idle_runs", 0.0))
    memory = MemoryNode(bench, config, bench.dut.request, bench.dut.response, **kwargs)
    memory.data[:] = random.Random(1).randbytes(len(memory.data))
    expected = []
    for addr, n in runs:
        count_lanes(COVERAGE, config, addr, n)
        if config.max_burst == 4:
            burst_bytes = 4 * config.bus_bytes
            bursts = (addr + n - 1) // burst_bytes - addr // burst_bytes + 1
            COVERAGE.hit("bursts of a run", "one" if bursts == 1 else "several")
        content = bytes(memory.data[addr : addr + n])
        for k in range(0, n, config.bus_bytes):
            part = content[k : k + config.bus_bytes]
            expected.append((int.from_bytes(part, "little"), k + config.bus_bytes >= n))
    return bench, memory, expected


@pytest.mark.some(4)
@pytest.mark.parametrize("config", [NANO, EDGE], ids=lambda c: c.name)
@pytest.mark.parametrize("idle", [0.0, 0.4])
@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_alignments_and_lengths(config: ChipConfig, idle: float, pause: float) -> None:
    runs = random_runs(config, f"{config.name}{idle}{pause}")
    bench, memory, expected = bench_of(config, runs, idle=idle, pause=pause, idle_runs=idle)
    got = bench.receive(bench.dut.o, len(expected), pause=pause)
    watch_streams(bench, COVERAGE, "run, beat", bench.dut.i, bench.dut.o)
    watch_streams(bench, COVERAGE, "request, answer", bench.dut.request, bench.dut.response)
    bench.run()
    for burst in memory.reads:
        COVERAGE.hit("burst of", burst.beats)
    assert [(x.data, x.last) for x in got.items] == expected
    assert not any(x.error for x in got.items)


@pytest.mark.parametrize("offset", range(4))
def test_every_length(offset: int) -> None:
    runs = [(offset + 4 * n, n) for n in range(1, 50)]
    bench, _, expected = bench_of(NANO, runs, latency=(3, 9))
    got = bench.receive(bench.dut.o, len(expected))
    bench.run()
    assert [(x.data, x.last) for x in got.items] == expected


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "config", [NANO, EDGE, NANO.replace(max_burst=1), NANO.replace(max_burst=2)], ids=lambda c: f"{c.name}{c.max_burst}"
)
@pytest.mark.parametrize("stress", [0.0, 0.4])
def test_joined_runs(config: ChipConfig, stress: float) -> None:
    """A bus beat that runs share is read once; where the promised run does not come, nothing of it is used."""
    width = config.bus_bytes
    rng = random.Random(f"{config.name}{stress}")
    lengths = [1, 2, width - 1, width, width + 1, 3 * width, 3 * 4 * width + 1]
    runs, beats = list[dict[str, int]](), list[int]()
    for _ in range(60):
        at, length = rng.randrange(2048), rng.choice([*lengths, rng.randint(1, 2 * width)])
        count, follows = rng.randint(1, 9), bool(runs) and not runs[-1]["more"]  # as in the next slab
        sent = rng.randint(1, count) if rng.random() < 0.3 else count
        for k in range(sent):
            joins = k > 0
            runs.append({"addr": at, "bytes": length, "more": k < count - 1, "joins": joins or follows})
            new = [b for b in range(at // width, (at + length - 1) // width + 1) if not joins or b not in beats[-1:]]
            if joins:
                COVERAGE.hit("joined at", "in a beat" if at % width else "a beat's end")
                COVERAGE.hit("joined run of", ("no new beat", "one", "several")[min(len(new), 2)])
            beats += new
            at += length
        if count > 1:
            COVERAGE.hit("next of more", "joins" if sent > 1 else "does not")
    bench, memory, expected = bench_of(
        config, [(run["addr"], run["bytes"]) for run in runs], send=runs, idle=stress, pause=stress, idle_runs=stress
    )
    got = bench.receive(bench.dut.o, len(expected), pause=stress)
    bench.run()
    assert [(x.data, x.last) for x in got.items] == expected
    assert [b.addr // width + k for b in memory.reads for k in range(b.beats)] == beats


@pytest.mark.parametrize(("gaps", "stress"), [((0,), 0.0), ((1, 2, 5), 0.0), ((0, 1, 7), 0.4)])
def test_meetings(gaps: tuple[int, ...], stress: float) -> None:
    """A run of each kind right behind one of each kind whose data are not all here."""
    rng = random.Random(len(gaps))
    kinds = every_pair(MEETINGS, rng)
    pauses = {at: rng.choice(gaps) for at in range(1, len(kinds))}
    runs = meeting_runs(kinds, rng)
    send = [item for at, run in enumerate(runs) for item in [*[None] * pauses.get(at, 0), run]]
    bench, memory, _ = bench_of(NANO, [], send=send, latency=(12, 20), idle=stress, pause=stress)
    sent, width = bench.traffic[0], NANO.bus_bytes
    expected = []
    for run in runs:
        content = bytes(memory.data[run["addr"] : run["addr"] + run["bytes"]])
        for k in range(0, run["bytes"], width):
            last = k + width >= run["bytes"]
            expected.append((int.from_bytes(content[k : k + width], "little") if content else None, last))
    got = bench.receive(bench.dut.o, len(expected), pause=stress)
    bench.run()
    assert [(None if x.error else x.data, x.last) for x in got.items] == expected
    left = [cycle for cycle, item in zip(got.cycles, got.items, strict=True) if item.last]
    count_meetings(COVERAGE, "meets", kinds, pauses, sent.cycles, left)


@pytest.mark.parametrize("size", [1, 3, 5, 9, 16])
def test_joined_runs_at_full_speed(size: int) -> None:
    """A cycle for each run, or for each beat of it if these are more."""
    config, count = preset("edge"), 96
    runs = [{"addr": 5 + size * k, "bytes": size, "more": k < count - 1, "joins": k > 0} for k in range(count)]
    bench, memory, expected = bench_of(
        config, [(run["addr"], run["bytes"]) for run in runs], send=runs, latency=(50, 50)
    )
    got = bench.receive(bench.dut.o, len(expected))
    bench.run()
    assert got.cycles[-1] - got.cycles[0] == len(expected) - 1
    assert sum(b.beats for b in memory.reads) == (5 + size * count - 1) // config.bus_bytes + 1


def test_joined_runs_on_a_crowded_way() -> None:
    """Where requests wait, those of short runs grow: one for four beats, as far as boundaries of bursts allow."""
    config, count, size = preset("edge"), 200, 9
    runs = [{"addr": size * k, "bytes": size, "more": k < count - 1, "joins": k > 0} for k in range(count)]
    addresses = [(run["addr"], run["bytes"]) for run in runs]
    reads = []
    for pause, depth in ((0.0, 64), (0.7, 64), (0.7, 2), (0.03, 64)):
        bench, memory, expected = bench_of(
            config, addresses, send=runs, latency=(50, 50), pause=pause, reader={"depth": depth}
        )
        got = bench.receive(bench.dut.o, len(expected))
        bench.run()
        assert [(x.data, x.last) for x in got.items] == expected
        reads.append(len(memory.reads))
    beats = -(-size * count // config.bus_bytes)
    assert reads[0] == beats
    assert beats / 4 <= reads[1] < beats / 2
    assert beats / 2 < reads[2] <= beats
    assert beats / 4 < reads[3] < beats


def test_shared_requests_never_grow() -> None:
    """All cores of a gang ask for the same, however crowded the way of each is."""
    config, count, size = preset("edge").replace(cores_x=2), 100, 9
    runs = [
        {"addr": size * k, "bytes": size, "more": k < count - 1, "joins": k > 0, "share": Share.ROW}
        for k in range(count)
    ]
    addresses = [(run["addr"], run["bytes"]) for run in runs]
    bench, memory, expected = bench_of(config, addresses, send=runs, latency=(50, 50), pause=0.7)
    got = bench.receive(bench.dut.o, len(expected))
    bench.run()
    assert [(x.data, x.last) for x in got.items] == expected
    assert len(memory.reads) == -(-size * count // config.bus_bytes)


def test_bursts() -> None:
    """Only the beats that hold the run are read, split where the longest burst ends."""
    bench, memory, expected = bench_of(NANO, [(4 * 3 + 1, 4 * 6)])
    bench.receive(bench.dut.o, len(expected))
    bench.run()
    assert memory.reads == [Burst(4 * 3, 1), Burst(16, 4), Burst(32, 2)]


@pytest.mark.parametrize(("beats", "max_burst"), [(1, 16), (3, 16), (16, 16), (32, 16), (1, 1)])
def test_one_beat_per_cycle(beats: int, max_burst: int) -> None:
    """A round trip of 50 cycles is hidden, for single-beat runs as for long ones."""
    config = preset("nano").replace(max_burst=max_burst)
    runs = [(k * 4 * beats % 2048, 4 * beats) for k in range(192 // beats)]
    bench, _, expected = bench_of(config, runs, latency=(50, 50))
    got = bench.receive(bench.dut.o, len(expected))
    bench.run()
    assert got.cycles[-1] - got.cycles[0] == len(expected) - 1


def test_one_bus_beat_per_cycle_unaligned() -> None:
    runs = [(5 + 12 * k, 8) for k in range(64)]  # 3 bus beats each
    bench, _, expected = bench_of(preset("nano"), runs, latency=(30, 30))
    got = bench.receive(bench.dut.o, len(expected))
    bench.run()
    assert got.cycles[-1] - got.cycles[0] <= 64 * 3


def test_response_never_waits() -> None:
    """All data requested finds room though nobody takes any."""
    bench, memory, _ = bench_of(NANO, [(0, 600)] * 4, reader={"beats": 8}, latency=(1, 1))
    bench.receive(bench.dut.o, pause=1.0)
    refused = []

    async def watch(ctx: Any) -> None:
        for _ in range(200):
            _, _, valid, ready = await ctx.tick().sample(bench.dut.response.valid, bench.dut.response.ready)
            refused.append(valid and not ready)

    bench.add(watch, wait=True)
    bench.traffic[0].done = True
    bench.run()
    assert not any(refused)
    assert 8 <= sum(b.beats for b in memory.reads) <= 8 + 4


def test_error_marks_the_beats_of_its_burst() -> None:
    bench, _, expected = bench_of(NANO, [(0, 48), (5000, 9)], faulty=range(20, 21))
    got = bench.receive(bench.dut.o, len(expected))
    bench.run()
    for item in got.items:
        COVERAGE.hit("error", bool(item.error))
    assert [x.error for x in got.items] == [0] * 4 + [1] * 4 + [0] * 4 + [1] * 3


def test_busy() -> None:
    bench, _, expected = bench_of(NANO, [(3, 21)], idle_runs=0.5)
    got = bench.receive(bench.dut.o, len(expected), pause=0.5)
    trace = []

    async def watch(ctx: Any) -> None:
        while True:
            _, _, busy = await ctx.tick().sample(bench.dut.busy)
            trace.append((bench.cycle, busy))

    bench.add(watch)
    bench.run()
    start = bench.traffic[0].cycles[0]
    assert [c for c, busy in trace if busy] == list(range(start + 1, got.cycles[-1] + 1))


def test_parameters() -> None:
    with rejects("beats is 16; two bursts of max_burst = 16 must fit"):
        MemoryReader(preset("nano"), tag=Tag.LOAD, source=(0, 0), beats=16)
    with rejects("depth is 1"):
        MemoryReader(preset("nano"), tag=Tag.LOAD, source=(0, 0), depth=1)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
