import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from runs_bench import EDGE, LANES, MEETINGS, NANO, count_lanes, meeting_runs, random_runs

from sley.abi.config import ChipConfig, preset
from sley.abi.network import Tag
from sley.abi.timing import WRITER_BURSTS
from sley.hw.memory.writer import MemoryWriter
from sley.hw.testing.coverage import Coverage, stream_states, watch_streams
from sley.hw.testing.meetings import count_meetings, every_pair, meetings
from sley.hw.testing.memory import Burst, MemoryNode
from sley.hw.testing.streams import StreamBench, compiled

COVERAGE = Coverage(
    "memory writer",
    {
        **LANES,
        "run that": ("is continued", "ends"),
        "burst of": range(1, 5),
        "error": (True, False),
        "run, beat": stream_states(2),
        "request": stream_states(1),
        "meets": meetings(MEETINGS),
        "groups pending": ["none", "one", "both"],
    },
)


class WriterBench(StreamBench):
    """A writer with its runs and their data, and the memory as it must look afterwards.

    ``join``: runs that continue each other are joined; ``cut``: the last one waits for another that does not come.
    """

    def __init__(
        self,
        config: ChipConfig,
        runs: list[tuple[int, int]],
        *,
        join: bool = False,
        cut: bool = False,
        idle: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(compiled(MemoryWriter, config, tag=Tag.STORE, source=(2, 0)), seed=11)
        rng = random.Random(1)
        self.errors: list[int] = []
        beats = []
        expected = bytearray(rng.randbytes(4096))
        self.before = bytes(expected)
        for addr, n in runs:
            content = rng.randbytes(n)
            expected[addr : addr + n] = content
            content += rng.randbytes(-n % config.bus_bytes)  # garbage after the end
            for k in range(0, len(content), config.bus_bytes):
                beats.append(int.from_bytes(content[k : k + config.bus_bytes], "little"))
        self.expected = bytes(expected)
        follows = [join and a + n == after for (a, n), (after, _) in pairwise([*runs, (0, 0)])]
        follows[-1] = cut
        for (addr, n), more in zip(runs, follows, strict=True):
            count_lanes(COVERAGE, config, addr, n)
            COVERAGE.hit("run that", "is continued" if more else "ends")
        sent = [{"addr": a, "bytes": n, "more": more} for (a, n), more in zip(runs, follows, strict=True)]
        self.runs = self.send(self.dut.i, sent, idle=idle)
        self.beats = self.send(self.dut.data, beats, idle=idle)
        self.memory = MemoryNode(self, config, self.dut.request, self.dut.response, idle=idle, **kwargs)
        self.memory.data[:] = self.before
        self.add(self._until_idle, wait=True)

    async def _until_idle(self, ctx: Any) -> None:
        dut, quiet = self.dut, 0
        while quiet < 5:
            ctx.set(dut.cut, self.runs.done)
            _, _, busy, error = await ctx.tick().sample(dut.busy, dut.error)
            assert busy or not error, "error after busy"
            COVERAGE.hit("error", bool(error))
            if error:
                self.errors.append(self.cycle)
            done = self.runs.done and self.beats.done and not busy
            assert not done or self.memory.quiet, "idle before memory acknowledged"
            quiet = quiet + 1 if done else 0


@pytest.mark.parametrize("config", [NANO, EDGE], ids=lambda c: c.name)
@pytest.mark.parametrize("idle", [0.0, 0.4])
@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_alignments_and_lengths(config: ChipConfig, idle: float, pause: float) -> None:
    runs = random_runs(config, f"{config.name}{idle}{pause}")
    bench = WriterBench(config, runs, idle=idle, pause=pause)
    watch_streams(bench, COVERAGE, "run, beat", bench.dut.i, bench.dut.data)
    watch_streams(bench, COVERAGE, "request", bench.dut.request)
    bench.run()
    for burst in bench.memory.writes:
        COVERAGE.hit("burst of", burst.beats)
    assert bytes(bench.memory.data) == bench.expected
    assert not bench.errors


@pytest.mark.parametrize("offset", range(4))
def test_every_length(offset: int) -> None:
    runs = [(offset + 4 + n * (n + 9) // 2, n) for n in range(1, 50)]  # apart: neighbours must stay untouched
    bench = WriterBench(NANO, runs, latency=(3, 9))
    bench.run()
    assert bytes(bench.memory.data) == bench.expected


@pytest.mark.some(4)
@pytest.mark.parametrize("config", [NANO, EDGE], ids=lambda c: c.name)
@pytest.mark.parametrize("stress", [0.0, 0.4])
@pytest.mark.parametrize("cut", [False, True])
def test_joined_runs(config: ChipConfig, stress: float, cut: bool) -> None:
    """As few bursts as if each stretch of joined runs were one run."""
    rng = random.Random(f"{config.name}{stress}{cut}")
    runs, stretches, at = [], [], 0
    while at < 3000:
        at += rng.randrange(40)
        sizes = [rng.choice([1, 3, 4, rng.randint(1, 40)]) for _ in range(rng.choice([1, 2, 7, 30]))]
        stretches.append((at, sum(sizes)))
        for size in sizes:
            runs.append((at, size))
            at += size
        at += 1  # a gap
    bench = WriterBench(config, runs, join=True, cut=cut, idle=stress, pause=stress)
    bench.run()
    assert bytes(bench.memory.data) == bench.expected
    single = WriterBench(config, stretches)
    single.run()
    assert bench.memory.writes == single.memory.writes


@dataclass
class Stretch:
    """Runs that join, and so are written together: bursts to acknowledge, and the group, once a run was accepted."""

    bursts: int
    group: int | None = None


def stretches_of(runs: list[dict[str, int]]) -> list[Stretch]:
    """The stretch of each run."""
    found: list[Stretch] = []
    for at, run in enumerate(runs):
        if run["joins"]:
            found.append(found[-1])
            continue
        end = run["addr"] + run["bytes"]
        for other in runs[at + 1 :]:
            if not other["joins"]:
                break
            end += other["bytes"]
        window = NANO.max_burst * NANO.bus_bytes
        found.append(Stretch((end - 1) // window - run["addr"] // window + 1))
    return found


@pytest.mark.parametrize(("gaps", "stress"), [((0,), 0.0), ((1, 2, 5), 0.0), ((0, 1, 7), 0.4)])
def test_meetings(gaps: tuple[int, ...], stress: float) -> None:
    """A run of each kind right behind one of each kind that memory has not acknowledged, of either group: each group is
    pending as long as memory has something of it, and has its errors."""
    rng, width = random.Random(len(gaps)), NANO.bus_bytes
    kinds = every_pair(MEETINGS, rng)
    pauses = {at: rng.choice(gaps) for at in range(1, len(kinds))}
    runs = meeting_runs(kinds, rng)
    bench = StreamBench(compiled(MemoryWriter, NANO, tag=Tag.STORE, source=(2, 0)), seed=5)
    dut = bench.dut
    memory = MemoryNode(bench, NANO, dut.request, dut.response, latency=(12, 20), idle=stress, pause=stress)
    memory.data[:] = rng.randbytes(len(memory.data))
    expected, beats = bytearray(memory.data), []
    for run in runs:
        content = rng.randbytes(run["bytes"])
        if run["addr"] < len(expected):
            expected[run["addr"] : run["addr"] + run["bytes"]] = content
        beats += [int.from_bytes(content[k : k + width], "little") for k in range(0, run["bytes"], width)]
    bench.send(dut.data, beats, idle=stress)
    stretches, ends = stretches_of(runs), {}
    unanswered = deque(dict.fromkeys(map(id, stretches)))
    by_id = {id(stretch): stretch for stretch in stretches}
    entered: list[int] = []

    async def process(ctx: Any) -> None:
        phase, wait, offered = 0, 0, False
        while unanswered:
            at = len(entered)
            if not offered and not wait and at < len(runs):
                pending = ctx.get(dut.pending)
                if not runs[at]["joins"] and not pending >> (1 - phase) & 1 and rng.random() < 0.7:
                    phase = 1 - phase
                ctx.set(dut.phase, phase)
                ctx.set(dut.i.payload, runs[at])
                ctx.set(dut.i.valid, 1)
                offered = True
            wait = max(0, wait - 1)
            _, _, ready, pending, answer, error, error_phase = await ctx.tick().sample(
                dut.i.ready, dut.pending, dut.response.valid, dut.error, dut.error_phase
            )
            here = {stretch.group for stretch in stretches if stretch.group is not None and stretch.bursts}
            assert pending == sum(1 << group for group in here)
            COVERAGE.hit("groups pending", ("none", "one", "both")[len(here)])
            if answer:
                stretch = by_id[unanswered[0]]
                assert error_phase == stretch.group or not error
                stretch.bursts -= 1
                if not stretch.bursts:
                    ends[unanswered.popleft()] = bench.cycle
            if offered and ready:
                ctx.set(dut.i.valid, 0)
                entered.append(bench.cycle)
                stretches[at].group = phase
                offered, wait = False, pauses.get(at + 1, 0)

    bench.add(process, wait=True)
    bench.run()
    assert memory.data == expected
    count_meetings(COVERAGE, "meets", kinds, pauses, entered, [ends[id(stretch)] for stretch in stretches])


def test_bursts() -> None:
    bench = WriterBench(NANO, [(4 * 3 + 1, 4 * 6)])
    bench.run()
    assert bench.memory.writes == [Burst(4 * 3, 1), Burst(16, 4), Burst(32, 2)]


@pytest.mark.parametrize(("beats", "max_burst"), [(1, 16), (3, 16), (16, 16), (32, 16), (1, 1)])
def test_throughput(beats: int, max_burst: int) -> None:
    """One head and its beats per burst, without a gap, with 50 cycles to each acknowledgement."""
    config = preset("nano").replace(max_burst=max_burst)
    total = 192
    bench = WriterBench(config, [(k * 4 * beats, 4 * beats) for k in range(total // beats)], latency=(50, 50))
    requests = next(t for t in bench.traffic if t.name == "memory requests")
    bench.run()
    assert bytes(bench.memory.data) == bench.expected
    heads = len(bench.memory.writes)
    assert requests.cycles[-1] - requests.cycles[0] == total + heads - 1


def test_bursts_unacknowledged() -> None:
    """As many as WRITER_BURSTS go out before the first acknowledgement, and no more."""
    latency, count = 3 * WRITER_BURSTS, WRITER_BURSTS + 8
    bench = WriterBench(preset("nano"), [(8 * k, 4) for k in range(count)], latency=(latency, latency))
    requests = next(t for t in bench.traffic if t.name == "memory requests")
    bench.run()
    heads = requests.cycles[::2]
    assert heads[WRITER_BURSTS - 1] - heads[0] == 2 * (WRITER_BURSTS - 1)
    assert heads[WRITER_BURSTS] - heads[0] > latency


def test_no_head_before_its_data() -> None:
    """A head is followed by its beats in consecutive cycles, however slow the data come."""
    bench = WriterBench(NANO, [(4 * k, 16) for k in range(0, 64, 4)], idle=0.7)
    requests = next(t for t in bench.traffic if t.name == "memory requests")
    bench.run()
    for k in range(0, len(requests.cycles), 5):
        assert requests.cycles[k + 4] - requests.cycles[k] == 4


def test_errors() -> None:
    bench = WriterBench(NANO, [(0, 16), (16, 16), (32, 20)], faulty=range(20, 21))
    bench.run()
    assert len(bench.errors) == 1
    bench = WriterBench(NANO, [(5000, 33)])
    bench.run()
    assert len(bench.errors) == len(bench.memory.writes)


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
