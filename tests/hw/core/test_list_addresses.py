"""Addresses by a list: against sums, whenever reads are granted and addresses taken, at full speed, and begun anew."""

import random
from typing import Any

import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.timing import LIST_LATENCY, SRAM_READ
from sley.hw.core.list_addresses import ListAddresses
from sley.hw.testing.pins import Pins
from sley.hw.testing.streams import StreamBench, compiled

EDGE = PRESETS["edge"].replace(accumulator_rows=16)
CONFIGS = pytest.mark.parametrize(
    "config", [PRESETS["nano"].replace(accumulator_rows=8, gather=True), EDGE], ids=lambda config: config.name
)
WORD = 0xFFFFFFFF


class ListBench(StreamBench):
    """Lists that begin one after the other, between accumulators and a taker of addresses.

    Members
    -------
    words : list of int
        The accumulators, lane after lane.
    starts, grants, taken : list of int
        Cycles.
    """

    def __init__(self, config: ChipConfig, *, denied: float, pause: float, seed: int = 0) -> None:
        super().__init__(compiled(ListAddresses, config), seed=seed, timeout=20_000)
        self.words = [self.rng.getrandbits(32) for _ in range(config.accumulator_rows * config.array)]
        self.config, self.pause = config, pause
        self.starts: list[int] = []
        self.grants: list[int] = []
        self.taken: list[int] = []
        self.add(self._memory(denied))

    def _memory(self, denied: float) -> Any:
        port, rng = self.dut.read, random.Random(self.rng.random())

        async def process(ctx: Any) -> None:
            pins, pipe = Pins(port.ready, port.data), [0] * SRAM_READ
            edges = aiter(ctx.tick().sample(port.valid, port.row, port.part, self.dut.enable))
            while True:
                ready = rng.random() >= denied
                pins.set(ctx, ready, pipe.pop(0))
                _, _, valid, row, part, enabled = await anext(edges)
                assert enabled or not valid
                if valid and ready:
                    self.grants.append(self.cycle)
                read = self.words[row * self.config.array + part]
                pipe.append(read if valid and ready else rng.getrandbits(32))

        return process

    def play(self, lists: list[tuple[int, int, int, int, int]], gap: int = 0) -> list[list[int]]:
        """Addresses that came of each list: base, stride, row, words, and how many are taken."""
        dut, rng, came = self.dut, random.Random(self.rng.random()), []

        async def unit(ctx: Any) -> None:
            for base, stride, row, runs, count in lists:
                got: list[int] = []
                came.append(got)
                for port, value in ((dut.base, base), (dut.runs, runs), (dut.row, row), (dut.stride, stride)):
                    ctx.set(port, value)
                ctx.set(dut.start, 1)
                await ctx.tick()
                self.starts.append(self.cycle)
                ctx.set(dut.start, 0)
                ctx.set(dut.enable, 1)
                while len(got) < count:
                    ready = rng.random() >= self.pause
                    ctx.set(dut.o.ready, ready)
                    _, _, valid, address = await ctx.tick().sample(dut.o.valid, dut.o.payload)
                    if valid and ready:
                        got.append(address)
                        self.taken.append(self.cycle)
                ctx.set(dut.o.ready, 0)
                ctx.set(dut.enable, 0)
                for _ in range(gap):
                    await ctx.tick()

        self.add(unit, wait=True)
        self.run()
        return came

    def expected(self, lists: list[tuple[int, int, int, int, int]]) -> list[list[int]]:
        def address(k: int, base: int, stride: int, row: int, runs: int) -> int:
            slab, run = divmod(k, runs)
            return (base + slab * stride + self.words[row * self.config.array + run]) & WORD

        return [[address(k, *given) for k in range(count)] for *given, count in lists]


@CONFIGS
@pytest.mark.parametrize(("denied", "pause", "gap"), [(0.0, 0.0, 0), (0.0, 0.6, 1), (0.5, 0.0, 0), (0.4, 0.4, 3)])
def test_random_lists(config: ChipConfig, denied: float, pause: float, gap: int) -> None:
    """Lists of every length, from every row, that are left before or behind a slab's end."""
    bench = ListBench(config, denied=denied, pause=pause, seed=gap)
    lists = []
    for _ in range(40):
        row = bench.rng.randrange(config.accumulator_rows)
        runs = bench.rng.randint(1, (config.accumulator_rows - row) * config.array)
        runs = bench.rng.choice([runs, min(runs, 3), 1])
        count = bench.rng.choice([0, 1, runs, runs + 1, 3 * runs])
        lists.append((bench.rng.getrandbits(32), bench.rng.randint(-(1 << 31), (1 << 31) - 1), row, runs, count))
    assert bench.play(lists, gap) == bench.expected(lists)


@CONFIGS
@pytest.mark.parametrize("runs", [1, 2, 3, 21])
def test_an_address_a_cycle(config: ChipConfig, runs: int) -> None:
    """From slab to slab, too, and of a list behind others; and no word is read further ahead than there is room."""
    bench = ListBench(config, denied=0.0, pause=0.0)
    bench.play([(0, 4, 1, runs, 60)] * 3)
    for k, start in enumerate(bench.starts):
        taken = bench.taken[60 * k : 60 * k + 60]
        assert taken[0] - start == LIST_LATENCY
        assert taken[-1] - taken[0] == 59
    assert len(bench.grants) <= 3 * (60 + LIST_LATENCY)


def test_a_read_that_is_not_granted_costs_its_cycle() -> None:
    """Denied reads delay the addresses behind them, and by no more cycles than were denied."""
    bench = ListBench(EDGE, denied=0.5, pause=0.0)
    bench.play([(0, 0, 0, 50, 50)])
    assert [taken - granted for taken, granted in zip(bench.taken, bench.grants, strict=False)] == [
        LIST_LATENCY - 1
    ] * 50
