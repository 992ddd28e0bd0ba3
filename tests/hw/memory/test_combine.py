"""The combiner of shared reads: what goes on, in which order, and what is lost."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.instructions import Share
from sley.abi.network import RequestKind, Tag
from sley.abi.placement import Node, core_node
from sley.hw.memory.combine import ReadCombiner
from sley.hw.testing.coverage import STREAM_STATES, Coverage, stream_states, watch_streams
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench, compiled

QUAD = preset("nano").replace(cores_x=2, cores_y=2)
CONFIGS = [QUAD, preset("nano").replace(cores_x=3), preset("nano").replace(cores_x=2, cores_y=3)]
IDS = ["2x2", "3x1", "2x3"]
COVERAGE = Coverage(
    "read combiner",
    {
        "goes on": [(name, share.name) for name in IDS for share in Share],
        "shared, in a gang in which cores end or wait for each other": ("goes on", "lost"),
        # Its queues take all that readers may ask: the input never waits.
        "input, output": stream_states(2, *(("waits", output) for output in STREAM_STATES)),
    },
)
Asked = tuple[int, int, Share]
"""Address, beats, share."""


def members(config: ChipConfig, core: int, share: Share) -> list[int]:
    """The cores that make a shared read together with this one."""
    y, x = divmod(core, config.cores_x)
    return [
        k
        for k in range(config.cores)
        if (share & Share.COLUMN or k // config.cores_x == y) and (share & Share.ROW or k % config.cores_x == x)
    ]


def head(config: ChipConfig, core: int, asked: Asked) -> dict[str, Any]:
    (x, y), (address, beats, share) = core_node(config, core), asked
    kind, tag = RequestKind.READ, Tag.LOAD
    return {
        "kind": kind,
        "tag": tag,
        "src": {"x": x, "y": y},
        "beats": beats - 1,
        "addr": address,
        "share": share,
    }


def merged(rng: random.Random, streams: list[list[Asked]]) -> list[tuple[int, Asked]]:
    """The streams of all cores as they may arrive at the port: in any order among cores."""
    left = [list(stream) for stream in streams]
    order = []
    while any(left):
        core = rng.choice([k for k, stream in enumerate(left) if stream])
        for _ in range(rng.randint(1, min(12, len(left[core])))):
            order.append((core, left[core].pop(0)))
    return order


def reads(config: ChipConfig, items: list[Any]) -> list[tuple[int, int, Node, Node, int]]:
    return [(x.addr, x.beats + 1, (x.near.x, x.near.y), (x.far.x, x.far.y), bool(x.error)) for x in items]


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.4, 0.1), (0.0, 0.7)])
def test_random(config: ChipConfig, idle: float, pause: float) -> None:
    """Each group's reads go on once, to all of it; every core gets its reads in its order, none is lost."""
    bench = StreamBench(compiled(ReadCombiner, config), seed=int(10 * idle + 100 * pause))
    streams: list[list[Asked]] = [[] for _ in range(config.cores)]
    groups = 0
    for number in range(150):
        share = bench.rng.choice(list(Share))
        core = bench.rng.randrange(config.cores)
        for k in members(config, core, share):
            streams[k].append((16 * number, bench.rng.randint(1, 16) if share is Share.NONE else 5, share))
        COVERAGE.hit("goes on", (f"{config.cores_x}x{config.cores_y}", share.name))
        groups += 1
    watch_streams(bench, COVERAGE, "input, output", bench.dut.i, bench.dut.o)
    bench.send(bench.dut.i, [head(config, *item) for item in merged(bench.rng, streams)], idle=idle)
    got = bench.receive(bench.dut.o, groups, pause=pause)
    bench.run()
    found: list[list[tuple[int, int]]] = [[] for _ in range(config.cores)]
    for address, beats, near, far, lost in reads(config, got.items):
        assert not lost
        for k in range(config.cores):
            x, y = core_node(config, k)
            if near[0] <= x <= far[0] and near[1] <= y <= far[1]:
                found[k].append((address, beats))
    assert found == [[(address, beats) for address, beats, _ in stream] for stream in streams]


def test_timing() -> None:
    """4 cycles, a read a cycle; a shared one follows its last asker."""
    bench = StreamBench(compiled(ReadCombiner, QUAD))
    alone = [(1, (16 * k, 1, Share.NONE)) for k in range(60)]
    together = [(k, (4096, 4, Share.ALL)) for k in (2, 0, 3, 1)]
    sent = bench.send(bench.dut.i, [head(QUAD, *item) for item in alone + together])
    got = bench.receive(bench.dut.o, 61)
    bench.run()
    assert sent.cycles == list(range(1, 65))
    assert got.cycles == [*range(5, 65), 68]


def test_queues_take_all_that_a_reader_may_ask() -> None:
    """A core far ahead of the other holds up nobody."""
    bench = StreamBench(compiled(ReadCombiner, QUAD))
    ahead = [(0, (16 * k, 1, Share.ROW)) for k in range(128)]
    others = [(k, (8192, 2, Share.NONE)) for k in (1, 2, 3)]
    behind = [(1, (16 * k, 1, Share.ROW)) for k in range(128)]
    sent = bench.send(bench.dut.i, [head(QUAD, *item) for item in ahead + others + behind])
    got = bench.receive(bench.dut.o, 3 + 128)
    bench.run()
    assert sent.cycles == list(range(1, 128 + 3 + 128 + 1))
    assert [x.addr for x in got.items] == [8192] * 3 + [16 * k for k in range(128)]


def lost_of(config: ChipConfig, streams: list[list[Asked]], ended: int, seed: int) -> tuple[list[Any], list[list[Any]]]:
    """What goes on; the reads of each core that are lost. Blocks of ``ended`` end when all their reads are answered,
    others when the last of them is lost."""
    bench = StreamBench(compiled(ReadCombiner, config), seed=seed)
    bench.send(bench.dut.i, [head(config, *item) for item in merged(bench.rng, streams)], idle=0.3)
    got = bench.receive(bench.dut.o, pause=0.3)

    async def wait(ctx: Any) -> None:
        for _ in range(12 * sum(map(len, streams)) + 100):
            await ctx.tick()
            done = 0
            for k, stream in enumerate(streams):
                x, y = core_node(config, k)
                mine = [r for r in reads(config, got.items) if r[2][0] <= x <= r[3][0] and r[2][1] <= y <= r[3][1]]
                if len(mine) == len(stream) and (ended >> k & 1 or (mine and mine[-1][-1])):
                    done |= 1 << k
            ctx.set(bench.dut.ended, done)

    bench.add(wait, wait=True)
    bench.run()
    found = reads(config, got.items)
    numbers = {core_node(config, k): k for k in range(config.cores)}
    lost: list[list[Any]] = [[] for _ in range(config.cores)]
    for address, beats, near, far, is_lost in found:
        if is_lost or near != far:
            COVERAGE.hit(
                "shared, in a gang in which cores end or wait for each other", "lost" if is_lost else "goes on"
            )
        if is_lost:
            assert near == far
            lost[numbers[near]].append((address, beats))
    return found, lost


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2, 3))])
def test_a_core_that_ended(seed: int) -> None:
    """Core 0 has stopped: its row and column wait for nothing, and with them, in the end, core 3."""
    rng = random.Random(seed)
    rounds = rng.randint(2, 12)
    stop = rng.randrange(rounds)
    streams: list[list[Asked]] = [[] for _ in range(4)]
    for k, stream in enumerate(streams):
        for number in range(stop if k == 0 else rounds):
            stream += [
                (64 * number + 1024 * (k // 2), 2, Share.ROW),
                (64 * number + 1024 * (8 + k % 2), 3, Share.COLUMN),
            ]
    found, lost = lost_of(QUAD, streams, 0b0001, seed)
    done = [(a, near, far) for a, _, near, far, is_lost in found if not is_lost and near != far]
    # Before the stop nothing is lost; behind it every core that is left gets an answer to each of its reads.
    assert all(64 * stop <= address % 1024 for reads in lost for address, _ in reads)
    assert len([a for a, *_ in done if a % 1024 < 64 * stop]) == 4 * stop
    for k in (1, 2, 3):
        x, y = core_node(QUAD, k)
        served = [a for a, near, far in done if near[0] <= x <= far[0] and near[1] <= y <= far[1]]
        assert sorted(served + [a for a, _ in lost[k]]) == sorted(a for a, *_ in streams[k])
    assert lost[1]
    assert lost[2]


@pytest.mark.parametrize("different", [(64, 5, Share.ROW), (0, 4, Share.ROW), (0, 5, Share.COLUMN), (0, 5, Share.ALL)])
def test_unequal(different: Asked) -> None:
    """Address, length or group differ: none of the two gets data with the other; the others of the gang have ended."""
    found, lost = lost_of(QUAD, [[(0, 5, Share.ROW)], [different], [], []], 0b1100, 0)
    assert all(is_lost for *_, is_lost in found)
    assert lost == [[(0, 5)], [different[:2]], [], []]


def test_a_core_that_runs_may_still_ask() -> None:
    """Nothing is lost while a core that has not ended has asked for nothing."""
    found, _ = lost_of(QUAD, [[(0, 5, Share.ROW)], [(64, 5, Share.ROW)], [], []], 0b0100, 0)
    assert found == []


def test_circle() -> None:
    """Each waits for the next one: what no order of loads can serve ends with errors, and only as many as it takes."""
    a, b, c, d = (n * 64 for n in range(4))
    row, column = Share.ROW, Share.COLUMN
    streams = [
        [(a, 1, row), (c, 1, column)],
        [(d, 1, column), (a, 1, row)],
        [(c, 1, column), (b, 1, row)],
        [(b, 1, row), (d, 1, column)],
    ]
    _, lost = lost_of(QUAD, streams, 0, 0)
    assert 1 <= sum(map(len, lost)) <= 4


def test_one_core_has_nothing_to_combine() -> None:
    with rejects("1 core"):
        ReadCombiner(preset("nano"))


def test_coverage(record_property: Callable[[str, object], None]) -> None:
    COVERAGE.check(record_property)
