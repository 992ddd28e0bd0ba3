"""Blocks of rows through the transposer, against their definition."""

import random
from typing import Any

import pytest

from sley.abi.timing import transposer_latency
from sley.hw.core.load.transposer import BlockTransposer
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


def given(block: Block) -> list[dict[str, Any]]:
    """Pieces in the order they come."""
    return [{"row": piece, "last": c == len(row) - 1} for row in block for c, piece in enumerate(row)]


def offer(bench: StreamBench, blocks: list[Block], idle: float = 0.0) -> Traffic:
    return bench.send(bench.dut.i, [piece for block in blocks for piece in given(block)], idle=idle)


def rows(got: Traffic) -> list[Piece]:
    return [[int(element) for element in piece] for piece in got.items]


@pytest.mark.some(10)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("columns", [1, 2, 8])
@pytest.mark.parametrize(("idle", "pause"), [(0.0, 0.0), (0.0, 0.6), (0.6, 0.0), (0.3, 0.3)])
def test_random_blocks(size: int, columns: int, idle: float, pause: float) -> None:
    """Blocks of changing width."""
    bits = 3 * size
    bench = StreamBench(BlockTransposer(size, bits, columns), seed=size + columns, timeout=20_000)
    blocks = [random_block(bench.rng, size, bench.rng.randint(1, columns), bits) for _ in range(12)]
    expected = [piece for block in blocks for piece in transposed(block)]
    offer(bench, blocks, idle)
    got = bench.receive(bench.dut.o, len(expected), pause=pause)
    bench.run()
    assert rows(got) == expected


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
        pieces += [piece | {"tag": rng.randrange(4)} for piece in given(block)]
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
    """The first piece leaves n * C + 1 cycles after the first came, one more from large blocks, and then one leaves in
    every cycle."""
    bench = StreamBench(BlockTransposer(size, 8, 4), seed=1)
    blocks = [random_block(bench.rng, size, columns, 8) for _ in range(5)]
    sent = offer(bench, blocks)
    count = len(blocks) * size * columns
    got = bench.receive(bench.dut.o, count)
    bench.run()
    assert sent.cycles == list(range(1, count + 1))
    first = sent.cycles[0] + size * columns + transposer_latency(size)
    assert got.cycles == list(range(first, first + count))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("last", [False, True])
def test_no_gap_behind_a_pause(size: int, last: bool) -> None:
    """What can be fetched while the output waits is: two blocks, or the second one while the last piece of the first
    waits."""
    unit = 2 * size
    bench = StreamBench(BlockTransposer(size, 8, 2), seed=4)
    dut, before = bench.dut, (unit - 1) * last
    first, second = (given(random_block(bench.rng, size, 2, 8)) for _ in range(2))
    bench.send(dut.i, [*first, *[None] * (2 * unit * last), *second])

    async def pause(ctx: Any) -> None:
        ctx.set(dut.o.ready, last)
        taken = 0
        while taken < before:
            taken += (await ctx.tick().sample(dut.o.valid))[-1]
        ctx.set(dut.o.ready, 0)
        await ctx.tick().repeat(4 * unit)
        ctx.set(dut.o.ready, 1)
        for _ in range(2 * unit - before):
            assert (await ctx.tick().sample(dut.o.valid))[-1]

    bench.add(pause, wait=True)
    bench.run()


@pytest.mark.parametrize("size", SIZES)
def test_capacity(size: int) -> None:
    """Two blocks wait, and a piece of the first one on the way out; nothing more is taken. The first one is complete
    when its last piece is here."""
    bench = StreamBench(BlockTransposer(size, 8, 2), seed=2, timeout=8 * size + 40)
    blocks = [random_block(bench.rng, size, 2, 8) for _ in range(4)]
    sent = offer(bench, blocks)
    bench.receive(bench.dut.o, 1, pause=1.0)
    states: set[bool] = set()

    async def watch(ctx: Any) -> None:
        while True:
            here = len(sent.items) >= 2 * size
            _, _, complete = await ctx.tick().sample(bench.dut.complete)
            assert complete == here
            states.add(here)

    bench.add(watch)
    with pytest.raises(AssertionError, match="not done"):
        bench.run()
    assert len(sent.items) == 2 * 2 * size
    assert states == {False, True}


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
