"""The block scheduler with cores that answer late, and sometimes with a fault."""

import random
from typing import Any

import pytest

from sley.abi.config import ChipConfig, preset
from sley.abi.faults import FaultCode, Unit
from sley.abi.packets import INLINE_ARGS
from sley.hw.command.scheduler import BlockScheduler
from sley.hw.noc.messages import LaunchWord, RequestKind, Tag
from sley.hw.noc.placement import core_node
from sley.hw.testing.command import BlockRun, FakeCores
from sley.hw.testing.streams import StreamBench

ONE = preset("nano")
PLACE = (LaunchWord.BLOCK_X, LaunchWord.BLOCK_Y, LaunchWord.BLOCK_Z)
ARG_WORDS = (0, 1, INLINE_ARGS, INLINE_ARGS + 1, 24, 3)
SIX = ONE.replace(cores_x=3, cores_y=2)


class Bench:
    """Grids in, results out, cores in between."""

    def __init__(self, config: ChipConfig, *, pause: float = 0.0, judge: Any = lambda run: None, **kwargs: Any):
        self.bench = StreamBench(BlockScheduler(config), seed=3)
        self.config = config
        self.flits = self.bench.receive(self.bench.dut.message, pause=pause)
        self.messages: list[tuple[Any, list[int]]] = []
        self.cores = FakeCores(self.bench, config, self.messages, kwargs.get("delay", (1, 50)), judge)
        self.seen = 0
        self.bench.send(self.bench.dut.done, self._answers(), wait=False)

    def _answers(self) -> Any:
        """Payloads of the cores' flits; launch messages are put together on the way."""
        for item in self.cores.answers():
            yield item and item["payload"]
            self._collect()

    def _collect(self) -> None:
        for flit in self.flits.items[self.seen :]:
            if self.ended:
                assert flit.payload.head.kind == RequestKind.MESSAGE
                assert flit.payload.head.tag == Tag.MESSAGE
                self.beats = flit.payload.head.beats + 1
                self.current = ((flit.dest.x, flit.dest.y), [])
                self.ended = False
            else:
                self.current[1].append(flit.payload.beat.data & 0xFFFF_FFFF)
            if flit.last:
                assert len(self.current[1]) == self.beats
                self.ended = True
                self.messages.append(self.current)
        self.seen = len(self.flits.items)

    ended = True
    current: tuple[Any, list[int]]

    def launch(self, grids: list[tuple[int, int, int]], pause: float = 0.0, gangs: tuple[int, ...] = ()) -> list[Any]:
        """Run these grids, those numbered in ``gangs`` as gangs; their results."""
        items = [
            {
                "queue": k % 8,
                "program": 0x1000 * (k + 1),
                "program_words": 7 + k,
                "tag": 3 * k,
                "args": 0x2000 + 4 * k,
                "arg_words": ARG_WORDS[k % len(ARG_WORDS)],
                "inline": [0x100 * k + i for i in range(INLINE_ARGS)],
                "grid": list(grid),
                "gang": k in gangs,
            }
            for k, grid in enumerate(grids)
        ]
        self.bench.send(self.bench.dut.i, items)
        results = self.bench.receive(self.bench.dut.o, len(grids), pause=pause)
        self.bench.run()
        return results.items


def blocks_of(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    return [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]


@pytest.mark.parametrize("config", [ONE, SIX], ids=["1", "6"])
@pytest.mark.parametrize("pause", [0.0, 0.4])
def test_grids(config: ChipConfig, pause: float) -> None:
    bench = Bench(config, pause=pause)
    grids = [(1, 1, 1), (5, 1, 1), (1, 7, 1), (1, 1, 3), (2, 3, 2), (3, 1, 2)]
    results = bench.launch(grids, pause)
    assert [r.queue for r in results] == list(range(6))
    assert all(r.fault.code == FaultCode.NONE for r in results)
    expected = []
    for k, grid in enumerate(grids):
        count = ARG_WORDS[k % len(ARG_WORDS)]
        in_memory = [0x2000 + 4 * k] if count > INLINE_ARGS else []
        inline = [] if in_memory else [0x100 * k + i for i in range(count)]
        for place in blocks_of(grid):
            expected.append([0x1000 * (k + 1), 3 * k, 7 + k | count << 16, *in_memory, *place, *grid, *inline])
    assert [run.words for run in bench.cores.runs] == expected


def test_lowest_free_core_first() -> None:
    bench = Bench(SIX, delay=(1000, 1000))
    bench.launch([(6, 1, 1)])
    assert [run.core for run in bench.cores.runs] == list(range(6))
    assert [node for node, _ in bench.messages] == [core_node(SIX, k) for k in range(6)]


def test_first_fault_wins_and_stops_the_grid() -> None:
    rng = random.Random(9)
    for number in range(3):

        def judge(run: BlockRun, number: int = number) -> tuple[FaultCode, Unit, int, int] | None:
            if run.words[0] != 0x2000 or run[LaunchWord.BLOCK_X] < 2 + number:
                return None
            return FaultCode.BUS_ERROR, Unit.STORE, rng.getrandbits(16), rng.getrandbits(32)

        bench = Bench(SIX, judge=judge)
        results = bench.launch([(4, 1, 1), (40, 1, 1), (4, 1, 1)])
        assert [r.fault.code for r in results] == [FaultCode.NONE, FaultCode.BUS_ERROR, FaultCode.NONE]
        runs = [run for run in bench.cores.runs if run.words[0] == 0x2000]
        assert all(run.reported for run in runs)
        assert len(runs) < 40
        fault = results[1].fault
        guilty = runs[fault.block]
        assert guilty.fault == (fault.code, fault.unit, fault.pc, fault.address)
        assert guilty.core == fault.core
        assert guilty.reported == min(run.reported for run in runs if run.fault)
        assert len(bench.cores.runs) == 4 + len(runs) + 4


def test_throughput() -> None:
    """Ten flits (no arguments) and one cycle of choice per block; the first leaves in the cycle after the launch."""
    bench = Bench(SIX, delay=(1000, 1000))
    bench.launch([(6, 1, 1)])
    cycles = bench.flits.cycles
    assert [cycles[10 * k] - cycles[0] for k in range(6)] == [11 * k for k in range(6)]
    taken = next(t for t in bench.bench.traffic if t.count == 1).cycles[0]
    assert cycles[0] == taken + 1


@pytest.mark.parametrize("pause", [0.0, 0.4])
def test_gangs(pause: float) -> None:
    """Block (x, y, z) on the core in column x and row y, each gang when the one before has ended."""
    bench = Bench(SIX, pause=pause)
    grids = [(3, 2, 4), (5, 1, 1), (3, 2, 1), (3, 2, 2)]
    results = bench.launch(grids, pause, gangs=(0, 2, 3))
    assert [r.queue for r in results] == list(range(4))
    assert all(r.fault.code == FaultCode.NONE for r in results)
    for k, grid in enumerate(grids):
        runs = [run for run in bench.cores.runs if run.words[0] == 0x1000 * (k + 1)]
        places = [tuple(run[word] for word in PLACE) for run in runs]
        assert places == blocks_of(grid)
        assert all(run.gang == (k != 1) for run in runs)
        if k == 1:
            continue
        assert [run.core for run in runs] == list(range(6)) * grid[2]
        for last, first in zip(range(5, len(runs) - 1, 6), range(6, len(runs), 6), strict=True):
            assert max(run.reported for run in runs[last - 5 : last + 1]) == min(r.reported for r in runs[first:]) - 1
            assert runs[first].start > max(run.end for run in runs[last - 5 : last + 1])


def test_a_gang_with_a_fault_is_handed_out_whole() -> None:
    """Its other blocks may wait for all to ask together; the next gang does not begin."""

    def judge(run: BlockRun) -> tuple[FaultCode, Unit, int, int] | None:
        return (FaultCode.BUS_ERROR, Unit.LOAD, 1, 2) if run.core == 0 and run[LaunchWord.BLOCK_Z] == 1 else None

    bench = Bench(SIX, judge=judge, delay=(1, 1))
    results = bench.launch([(3, 2, 3), (3, 2, 1)], gangs=(0, 1))
    assert [r.fault.code for r in results] == [FaultCode.BUS_ERROR, FaultCode.NONE]
    assert (results[0].fault.core, results[0].fault.block) == (0, 6)
    assert [run.core for run in bench.cores.runs] == [*range(6)] * 3


def test_ended() -> None:
    """High from the end of a core's block of the gang until the next gang begins."""
    bench = Bench(SIX, delay=(1, 200))
    seen: list[tuple[int, int]] = []

    async def watch(ctx: Any) -> None:
        while True:
            _, _, ended = await ctx.tick().sample(bench.bench.dut.ended)
            seen.append((bench.bench.cycle, ended))

    bench.bench.add(watch)
    bench.launch([(3, 2, 3)], gangs=(0,))
    for gang in range(3):
        runs = bench.cores.runs[6 * gang : 6 * gang + 6]
        until = bench.cores.runs[6 * gang + 6].start - 40 if gang < 2 else seen[-1][0]
        for cycle, ended in seen:
            if runs[0].start <= cycle < until:
                over = sum(1 << run.core for run in runs if run.end + 8 < cycle and run.end + 60 < cycle)
                running = sum(1 << run.core for run in runs if cycle <= run.end)
                assert ended & running == 0
                assert ended & over == over
