"""Blocks of rows through the transposer, against their definition."""

import random
from typing import Any

import pytest

from sley.hw.core.transposer import BlockTransposer
from sley.hw.testing.parameters import rejects
from sley.hw.testing.streams import StreamBench, Traffic

SIZES = [2, 4, 8]

Piece = list[int]
Block = list[list[Piece]]
"""Rows of pieces."""


def random_block(rng: random.Random, size: int, columns: int, bits: int) -> Block:
    return [[[rng.getrandbits(bits) for _ in range(size)] for _ in range(columns)] for _ in range(size)]


def transposed(block: Block) -> list[Piece]:
    """Pieces in the order they leave."""
    size, columns = len(block), len(block[0])
    return [[block[i][c][j] for i in range(size)] for j in range(size) for c in range(columns)]


def offer(bench: StreamBench, blocks: list[Block], idle: float = 0.0) -> Traffic:
    pieces = [{"row": piece, "columns": len(row)} for block in blocks for row in block for piece in row]
    return bench.send(bench.dut.i, pieces, idle=idle)


def rows(got: Traffic) -> list[Piece]:
    return [[int(element) for element in piece] for piece in got.items]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("columns", [1, 2, 8])
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.0, 0.6), (0.6, 0.0), (0.3, 0.3)])
def test_random_blocks(size: int, columns: int, idle: float, pause: float) -> None:
    """Blocks of changing width; what goes with each piece is the width of its own block."""
    bits = 3 * size
    bench = StreamBench(BlockTransposer(size, bits, columns), seed=size + columns, timeout=20_000)
    blocks = [random_block(bench.rng, size, bench.rng.randint(1, columns), bits) for _ in range(12)]
    expected = [piece for block in blocks for piece in transposed(block)]
    widths = [len(block[0]) for block in blocks for row in block for _ in row]
    offer(bench, blocks, idle)
    got = bench.receive(bench.dut.o, len(expected), pause=pause)
    seen: list[int] = []

    async def watch(ctx: Any) -> None:
        while True:
            _, _, valid, ready, width = await ctx.tick().sample(bench.dut.o.valid, bench.dut.o.ready, bench.dut.columns)
            if valid and ready:
                seen.append(width)

    bench.add(watch)
    bench.run()
    assert rows(got) == expected
    assert seen == widths


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("columns", [2, 8])
def test_what_is_said_of_each_piece(size: int, columns: int) -> None:
    """Its ends, and the tag that came with the last piece of its block."""
    bench = StreamBench(BlockTransposer(size, 3, columns), seed=size, timeout=20_000)
    dut, rng = bench.dut, bench.rng
    pieces, expected = [], []
    for _ in range(20):
        width = rng.choice([1, *(2 * n for n in range(1, columns // 2 + 1))])
        block, tag = random_block(rng, size, width, 3), rng.randrange(4)
        pieces += [{"row": piece, "columns": width, "tag": rng.randrange(4)} for row in block for piece in row]
        pieces[-1]["tag"] = tag
        for j in range(size):
            for c in range(width):
                end = c == width - 1
                expected.append((int(end), int(end and j == size - 1), int(c == (width - 1) // 2), tag))
    bench.send(dut.i, pieces, idle=0.2)
    bench.receive(dut.o, len(expected), pause=0.3)
    seen: list[Any] = []

    async def watch(ctx: Any) -> None:
        while True:
            _, _, valid, ready, *said = await ctx.tick().sample(
                dut.o.valid, dut.o.ready, dut.row_end, dut.block_end, dut.middle, dut.tag
            )
            if valid and ready:
                seen.append(tuple(said))

    bench.add(watch)
    bench.run()
    assert seen == expected


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_latency_and_throughput(size: int, columns: int) -> None:
    """The first piece leaves n * C + 1 cycles after the first came, and then one leaves in every cycle."""
    bench = StreamBench(BlockTransposer(size, 8, 4), seed=1)
    blocks = [random_block(bench.rng, size, columns, 8) for _ in range(5)]
    sent = offer(bench, blocks)
    count = len(blocks) * size * columns
    got = bench.receive(bench.dut.o, count)
    bench.run()
    assert sent.cycles == list(range(1, count + 1))
    first = sent.cycles[0] + size * columns + 1
    assert got.cycles == list(range(first, first + count))


@pytest.mark.parametrize("size", SIZES)
def test_capacity_and_level(size: int) -> None:
    """Two blocks wait, and a piece of the first one on the way out; nothing more is taken."""
    bench = StreamBench(BlockTransposer(size, 8, 2), seed=2, timeout=8 * size + 40)
    blocks = [random_block(bench.rng, size, 2, 8) for _ in range(4)]
    sent = offer(bench, blocks)
    bench.receive(bench.dut.o, 1, pause=1.0)
    levels: list[int] = []

    async def watch(ctx: Any) -> None:
        while True:
            levels.append((await ctx.tick().sample(bench.dut.level))[-1])

    bench.add(watch)
    with pytest.raises(AssertionError, match="not done"):
        bench.run()
    assert len(sent.items) == 2 * 2 * size
    assert levels == sorted(levels)
    assert set(levels) == {0, 1, 2}


@pytest.mark.parametrize("size", SIZES)
def test_idle_says_whether_anything_is_here(size: int) -> None:
    bench = StreamBench(BlockTransposer(size, 8, 4), seed=3)
    blocks = [random_block(bench.rng, size, bench.rng.randint(1, 4), 8) for _ in range(6)]
    count = sum(len(transposed(block)) for block in blocks)
    sent, got = offer(bench, blocks, idle=0.7), bench.receive(bench.dut.o, count, pause=0.2)
    states: set[bool] = set()

    async def watch(ctx: Any) -> None:
        while True:
            here = len(sent.items) - len(got.items)
            _, _, idle = await ctx.tick().sample(bench.dut.idle)
            assert idle == (here == 0)
            states.add(bool(idle))

    bench.add(watch)
    bench.run()
    assert states == {False, True}


@pytest.mark.parametrize(
    ("size", "columns", "error"),
    [(1, 1, "size is 1"), (6, 1, "size is 6"), (4, 0, "columns is 0"), (4, 3, "columns is 3")],
)
def test_bad_parameters(size: int, columns: int, error: str) -> None:
    with rejects(error):
        BlockTransposer(size, 8, columns)
