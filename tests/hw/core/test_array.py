# amaranth: UnusedElaboratable=no
import random

import numpy as np
import pytest
from amaranth.sim import Simulator
from numpy.typing import NDArray

from sley.abi.config import PRESETS, ChipConfig
from sley.hw.core.array import SystolicArray, array_latency

Tile = tuple[NDArray[np.int64], NDArray[np.int64]]  # weights [fold_depth, N], rows [any, fold_depth]


def lane_values(config: ChipConfig, values: NDArray[np.int64]) -> list[int]:
    """int8 elements, ``lane_elements`` for each lane in the order of the lanes."""
    raw = values.astype(np.int8).view(np.uint8).reshape(-1, config.lane_elements)
    return [int.from_bytes(lane.tobytes(), "little") for lane in raw]


def run(config: ChipConfig, tiles: list[Tile], *, gap: float, seed: int) -> list[int]:
    """Streams the tiles, as early as the rules of the array allow, with random gaps on both sides; the cycles in
    which rows entered."""
    dut = SystolicArray(config)
    rng = random.Random(seed)
    n, elements = config.array, config.lane_elements
    words = [
        (tile, j, lane_values(config, w.reshape(n, elements, n)[j].T.reshape(-1)))
        for tile, (w, _) in enumerate(tiles)
        for j in range(n)
    ]
    rows = [(tile, i, row) for tile, (_, x) in enumerate(tiles) for i, row in enumerate(x)]
    entered: list[int] = []
    expected: dict[int, NDArray[np.int64]] = {}

    async def bench(ctx) -> None:  # type: ignore[no-untyped-def]
        loaded, swapped, cycle = 0, 0, 0
        while rows or expected:
            ctx.set(dut.swap, 0)
            ctx.set(dut.activations.as_value(), rng.getrandbits(n * config.lane_bits))
            if rows and loaded > rows[0][0] and rng.random() >= gap:
                tile, i, row = rows.pop(0)
                ctx.set(dut.activations, lane_values(config, row))
                ctx.set(dut.swap, i == 0)
                swapped += i == 0
                entered.append(cycle)
                expected[cycle + array_latency(config)] = row @ tiles[tile][0]
            ctx.set(dut.weights_valid, 0)
            ctx.set(dut.weights_first, rng.random() < 0.5)
            ctx.set(dut.weights.as_value(), rng.getrandbits(n * config.lane_bits))
            if words and swapped >= words[0][0] and rng.random() >= gap:
                tile, j, word = words.pop(0)
                ctx.set(dut.weights_valid, 1)
                ctx.set(dut.weights_first, j == 0)
                ctx.set(dut.weights, word)
                loaded += j == n - 1
            if cycle in expected:
                assert [ctx.get(s) for s in dut.sums] == expected.pop(cycle).tolist()
            await ctx.tick()
            cycle += 1
            assert cycle < 10_000

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return entered


def random_tiles(config: ChipConfig, counts: list[int], seed: int) -> list[Tile]:
    rng = np.random.default_rng(seed)
    depth, n = config.fold_depth, config.array
    return [(rng.integers(-128, 128, (depth, n)), rng.integers(-128, 128, (count, depth))) for count in counts]


@pytest.mark.parametrize("name", ["nano", "edge"])
@pytest.mark.parametrize("gap", [0.0, 0.4])
def test_equals_numpy(name: str, gap: float) -> None:
    config = PRESETS[name]
    n = config.array
    run(config, random_tiles(config, [1, n, n + 1, 2, 1, 2 * n + 3, 7], seed=n), gap=gap, seed=1)


def test_no_gap_between_tiles_of_n_rows() -> None:
    config = PRESETS["nano"]
    n = config.array
    entered = run(config, random_tiles(config, [n] * 6, seed=3), gap=0, seed=2)
    assert entered == list(range(n, n + 6 * n))


@pytest.mark.parametrize("name", ["nano", "edge"])
def test_extremes(name: str) -> None:
    config = PRESETS[name]
    n, depth = config.array, config.fold_depth
    tiles = [
        (np.full((depth, n), w, np.int64), np.array([[-128] * depth, [127] * depth, [0] * depth])) for w in (-128, 127)
    ]
    run(config, tiles, gap=0, seed=0)


def test_tile_cut_short_does_no_harm() -> None:
    config = PRESETS["nano"]
    n = config.array
    (good, row) = random_tiles(config, [1], seed=5)[0]
    for cut in range(1, n):
        dut = SystolicArray(config)

        async def bench(ctx, dut: SystolicArray = dut, cut: int = cut) -> None:  # type: ignore[no-untyped-def]
            for j in [*range(cut), *range(n)]:
                ctx.set(dut.weights_valid, 1)
                ctx.set(dut.weights_first, j == 0)
                ctx.set(dut.weights, lane_values(config, good[j]))
                await ctx.tick()
            ctx.set(dut.weights_valid, 0)
            ctx.set(dut.swap, 1)
            ctx.set(dut.activations, lane_values(config, row[0]))
            await ctx.tick()
            ctx.set(dut.swap, 0)
            await ctx.tick().repeat(array_latency(config) - 1)
            assert [ctx.get(s) for s in dut.sums] == (row[0] @ good).tolist()

        sim = Simulator(dut)
        sim.add_clock(1e-6)
        sim.add_testbench(bench)
        sim.run()
