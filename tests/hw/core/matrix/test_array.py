# amaranth: UnusedElaboratable=no
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.timing import OLD_SUM_ENTRY, array_latency, bf16_old_latency
from sley.abi.types import ElementType
from sley.hw.core.matrix.array import SystolicArray, settle_cycles
from sley.hw.testing.streams import compiled
from sley.sim.golden.float32 import Bits
from sley.sim.golden.matmul import Lanes, bf16_sums, int8_sums

NANO = PRESETS["nano"]
WIDE = NANO.replace(operand_types=("int8", "bf16"))
CONFIGS = pytest.mark.parametrize("config", [NANO, WIDE], ids=["nano", "wide"])

Tile = tuple[Lanes, Lanes]  # weights [up to N, N], rows [any, N]


def run(config: ChipConfig, tiles: list[Tile], *, bf16: bool = False, gap: float, seed: int) -> list[int]:
    """Streams the tiles, as early as the rules of the array allow, with random gaps on both sides; the cycles in
    which rows entered."""
    design = compiled(SystolicArray, config)
    dut = design.dut
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    n, latency = config.array, array_latency(config, ElementType.BF16 if bf16 else ElementType.INT8)
    words = [(tile, j, word) for tile, (w, _) in enumerate(tiles) for j, word in enumerate(tile_words(config, w))]
    rows = [(tile, i, row) for tile, (_, x) in enumerate(tiles) for i, row in enumerate(x)]
    entered: list[int] = []
    olds: dict[int, Bits] = {}
    expected: dict[int, NDArray[np.int32]] = {}

    async def bench(ctx: Any) -> None:
        loaded, swapped, cycle, enters = 0, 0, 0, False
        if config.has(ElementType.BF16):
            ctx.set(dut.bf16, bf16)
            ctx.set(dut.run, bf16)
            await ctx.tick()
        while rows or expected:
            ctx.set(dut.activations.as_value(), rng.getrandbits(n * config.lane_bits))
            if enters:
                tile, i, row = rows.pop(0)
                ctx.set(dut.activations, row.tolist())
                swapped += i == 0
                entered.append(cycle)
                old = numbers.standard_normal(n).astype(np.float32).view(np.uint32)
                olds[cycle + bf16_old_latency() - OLD_SUM_ENTRY] = old
                w = tiles[tile][0]
                x = row[None, : len(w)]
                result = bf16_sums(x, w, old) if bf16 else int8_sums(x, w, None)
                expected[cycle + latency] = result[0].view(np.int32)
            ctx.set(dut.weights_valid, 0)
            ctx.set(dut.weights_row, rng.randrange(n))
            ctx.set(dut.weights_rest, rng.randrange(2))
            ctx.set(dut.weights.as_value(), rng.getrandbits(n * config.lane_bits))
            if words and swapped >= words[0][0] and rng.random() >= gap:
                tile, j, word = words.pop(0)
                ctx.set(dut.weights_valid, 1)
                ctx.set(dut.weights_row, j)
                ctx.set(dut.weights_rest, j >= len(tiles[tile][0]))
                ctx.set(dut.weights, word)
                loaded += not words or words[0][0] > tile
            enters = bool(rows) and loaded > rows[0][0] and rng.random() >= gap
            ctx.set(dut.swap, enters and rows[0][1] == 0)
            if config.has(ElementType.BF16):
                ctx.set(dut.weights_bf16, bf16)
                old = olds.pop(cycle, numbers.integers(0, 1 << 32, n, np.uint32))
                ctx.set(dut.old, old.view(np.int32).tolist())
            if cycle in expected:
                assert [ctx.get(s) for s in dut.sums] == expected.pop(cycle).tolist()
            await ctx.tick()
            cycle += 1
            assert cycle < 10_000

    design.run([bench])
    return entered


def tile_words(config: ChipConfig, weights: Lanes) -> list[list[int]]:
    """One for each row, and a last one of zeros for the rest of the array."""
    words: list[list[int]] = weights.tolist()
    return words if len(words) == config.array else [*words, [0] * config.array]


def random_tiles(
    config: ChipConfig, counts: list[int], seed: int, bf16: bool = False, depth: int | None = None
) -> list[Tile]:
    rng = np.random.default_rng(seed)

    def lanes(rows: int) -> Lanes:
        if bf16:
            values = rng.standard_normal((rows, config.array)).astype(np.float32)
            return (values.view(np.uint32) >> 16).astype(np.uint16)
        return rng.integers(0, 256, (rows, config.row_bytes), np.uint8).view(f"u{config.lane_elements()}")

    return [(lanes(depth or config.array), lanes(count)) for count in counts]


@pytest.mark.some(3)
@pytest.mark.parametrize(("config", "bf16"), [(NANO, False), (WIDE, False), (WIDE, True)])
@pytest.mark.parametrize("gap", [0.0, 0.1, 0.4])
def test_equals_the_golden_function(config: ChipConfig, bf16: bool, gap: float) -> None:
    n = config.array
    counts = [1, n, n + 1, 2, 1, 2 * n + 3, 7, n, n, 1, 2, 1, 3, n, n, n, n, n, n, n, 1]
    run(config, random_tiles(config, counts, seed=n, bf16=bf16), bf16=bf16, gap=gap, seed=1)


@CONFIGS
@pytest.mark.parametrize("gap", [0.0, 0.2])
def test_tiles_of_fewer_rows(config: ChipConfig, gap: float) -> None:
    dice = random.Random(config.lane_elements())
    tiles = [
        random_tiles(config, [dice.randint(1, config.array)], seed, depth=dice.randint(1, config.array))[0]
        for seed in range(40)
    ]
    run(config, tiles, gap=gap, seed=1)


@CONFIGS
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_tiles_of_fewer_rows_follow_sooner(config: ChipConfig, depth: int) -> None:
    words = depth + 1
    entered = run(config, random_tiles(config, [1] * 12, seed=3, depth=depth), gap=0, seed=2)
    assert entered == list(range(words, 13 * words, words))


@pytest.mark.slow
def test_the_full_array() -> None:
    config = PRESETS["edge"]
    for bf16 in (False, True):
        run(config, random_tiles(config, [config.array] * 3, seed=4, bf16=bf16), bf16=bf16, gap=0, seed=1)


@pytest.mark.some(4)
@pytest.mark.parametrize(("config", "bf16"), [(NANO, False), (WIDE, False), (WIDE, True)])
@pytest.mark.parametrize("rows", [4, 5, 6, 7])
def test_no_gap_between_tiles(config: ChipConfig, bf16: bool, rows: int) -> None:
    """bf16: with any phase between the slots of the rows and the tiles."""
    n = config.array
    entered = run(config, random_tiles(config, [rows] * 16, seed=3, bf16=bf16), bf16=bf16, gap=0, seed=2)
    assert entered == list(range(n, n + 16 * rows))


@CONFIGS
def test_extremes(config: ChipConfig) -> None:
    n, elements = config.array, config.lane_elements()

    def lanes(rows: list[int]) -> Lanes:
        return np.repeat(np.array(rows, np.int8)[:, None], n * elements, 1).view(f"u{elements}")

    run(config, [(lanes([w] * n), lanes([-128, 127, 0])) for w in (-128, 127)], gap=0, seed=0)


@pytest.mark.some(6)
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("cut", range(1, WIDE.array))
def test_tile_cut_short_does_no_harm(cut: int, bf16: bool) -> None:
    n = WIDE.array
    (good, row) = random_tiles(WIDE, [1], seed=5)[0]
    design = compiled(SystolicArray, WIDE)
    dut = design.dut

    async def bench(ctx: Any) -> None:
        ctx.set(dut.weights_bf16, bf16)
        words = [*range(cut), *range(n)]
        swap = len(words) - 1 + (settle_cycles(WIDE) - 1 if bf16 else 0)
        for cycle in range(swap + 1):
            ctx.set(dut.weights_valid, cycle < len(words))
            if cycle < len(words):
                ctx.set(dut.weights_row, words[cycle])
                ctx.set(dut.weights, good[words[cycle]].tolist())
            ctx.set(dut.swap, cycle == swap)
            await ctx.tick()
        ctx.set(dut.weights_valid, 0)
        ctx.set(dut.swap, 0)
        ctx.set(dut.activations, row[0].tolist())
        await ctx.tick()
        await ctx.tick().repeat(array_latency(WIDE) - 1)
        assert [ctx.get(s) for s in dut.sums] == int8_sums(row, good, None)[0].view(np.int32).tolist()

    design.run([bench])
