"""Loops one in the other whose rounds are one sequence: what is joined, and bits stay the same."""

from functools import partial
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import agree, drawn_agrees, types_of

from sley.abi.config import preset
from sley.runtime import Device, tile
from sley.runtime.tile.compiler import Prepared, prepare
from sley.runtime.tile.ir import Function
from sley.runtime.tile.passes.rounds import Turn
from sley.sim.engines.options import default_engine

BASE = preset("base")
BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def product(a: Any, b: Any, x: Any, c: Any, rows: int, columns: int, depth: int, extra: str) -> None:
    """``extra``: x is added before the loop, or behind it; or a is loaded before it; or nothing of these."""
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns), tile.sums_of(a.dtype))
    if extra == "before":
        total = total + tile.load(x, (row, column), (rows, columns))
    if extra == "resident":
        held = tile.load(a, (row, 0), (rows, depth))
    for k in range(0, a.shape[1], depth):
        left = held if extra == "resident" else tile.load(a, (row, k), (rows, depth))
        total = tile.dot(left, tile.load(b, (k, column), (depth, columns)), total)
    if extra == "behind":
        total = total + tile.load(x, (row, column), (rows, columns))
    tile.store(c, (row, column), total)


@tile.kernel
def chained(a: Any, b: Any, x: Any, c: Any, rows: int, depth: int, more: bool) -> None:
    """Each block begins with what the block before it has stored. ``more``: a sum with x, loaded at its end."""
    row = tile.block_id() * rows
    total = tile.load(c, (row, 0), (rows, b.shape[1]))
    for k in range(0, a.shape[1], depth):
        total = tile.dot(tile.load(a, (row, k), (rows, depth)), tile.load(b, (k, 0), (depth, b.shape[1])), total)
    if more:
        total = total + tile.load(x, (row, 0), (rows, b.shape[1]))
    tile.store(c, (row + rows, 0), total)


@tile.kernel
def turned(a: Any, b: Any, c: Any, memory: Any, rows: int, depth: int) -> None:
    """Results go through memory, so a load waits for the end of the loop; a second product takes the first."""
    row = tile.block_id() * rows
    total, width = tile.zeros((rows, b.shape[1])), b.shape[1]
    for k in range(0, a.shape[1], depth):
        inner = tile.relu(tile.dot(tile.load(a, (row, k), (rows, depth)), tile.load(b, (k, 0), (depth, width))))
        total = tile.dot(inner.to(a.dtype), tile.load(b, (0, 0), (width, width)), total)
    tile.store(memory, (0, row), total.to(a.dtype).T)
    tile.store(c, (row, 0), tile.load(memory, (0, row), (rows, width), axes=(1, 0)))


def numbers(random: Random, *shape: int, dtype: Any = BF16) -> Any:
    return np.random.default_rng(random.randrange(1 << 30)).integers(-4, 5, shape).astype(dtype)


def product_case(random: Random) -> tuple[Any, dict[str, Any], dict[str, Any], tuple[int, int, int]]:
    m, k, n = random.choice((1, 16, 33, 70)), random.choice((16, 130, 200)), random.choice((1, 33, 160, 250))
    dtype = random.choice((BF16, np.int8))
    extra = random.choice(("", "before", "behind", "resident"))
    rows, columns, depth = random.choice((8, 16, 24)), random.choice((32, 96, 128)), random.choice((16, 48, 64))
    sums = np.int32 if dtype == np.int8 else np.float32
    arrays = {"a": numbers(random, m, k, dtype=dtype), "b": numbers(random, k, n, dtype=dtype)}
    arrays |= {"x": numbers(random, m, n, dtype=sums), "c": np.zeros((m, n), sums)}
    constants = {"rows": rows, "columns": columns, "depth": depth, "extra": extra}
    return product, arrays, constants, (-(-n // columns), -(-m // rows), 1)


def chained_case(random: Random) -> tuple[Any, dict[str, Any], dict[str, Any], tuple[int, int, int]]:
    blocks, rows, k, n = random.choice((2, 3, 5)), random.choice((5, 16)), random.choice((130, 200)), 80
    arrays = {"a": numbers(random, blocks * rows, k), "b": numbers(random, k, n)}
    arrays["x"] = numbers(random, blocks * rows, n, dtype=np.float32)
    arrays["c"] = numbers(random, (blocks + 1) * rows, n, dtype=np.float32)
    constants = {"rows": rows, "depth": random.choice((32, 64)), "more": random.random() < 0.5}
    return chained, arrays, constants, (blocks, 1, 1)


def turned_case(random: Random) -> tuple[Any, dict[str, Any], dict[str, Any], tuple[int, int, int]]:
    m, k, n, rows = random.choice((16, 40)), random.choice((32, 50, 128)), random.choice((16, 32)), 16
    arrays = {"a": numbers(random, m, k), "b": numbers(random, max(k, n), n)}
    arrays |= {"c": np.zeros((m, n), BF16), "memory": np.zeros((n, m), BF16)}
    return turned, arrays, {"rows": rows, "depth": random.choice((16, 32))}, (-(-m // rows), 1, 1)


def drawn(seed: int) -> tuple[Any, dict[str, Any], dict[str, Any], tuple[int, int, int], int]:
    random = Random(seed)
    case = random.choice((product_case, product_case, chained_case, turned_case))(random)
    return *case, random.choice((1, 2, 4, 4))


def prepared(kernel: Any, arrays: dict[str, Any], constants: dict[str, Any], grid: Any, buffer: int = 4) -> Prepared:
    function: Function = kernel.function(types_of(arrays), constants, grid)
    return prepare(function, BASE, tile.Schedule(buffer=buffer, resident=False))


def joined(found: Prepared) -> list[int]:
    """How many loops each of those is that have operations ahead."""
    return [len(rounds.loops) for rounds in found.early.values()]


def test_which_are_joined() -> None:
    """Blocks along both axes and the loop over K: one sequence, whose sums begin and end in first and last rounds."""
    random = Random(1)
    arrays = {"a": numbers(random, 64, 512), "b": numbers(random, 512, 256)}
    arrays |= {"x": np.zeros((64, 256), np.float32), "c": np.zeros((64, 256), np.float32)}
    constants = {"rows": 32, "columns": 128, "depth": 64, "extra": ""}
    found = prepared(product, arrays, constants, (2, 2, 1))
    assert joined(found) == [3]
    (rounds,) = found.early.values()
    assert rounds.count == 2 * 2 * 8
    named = {op.name: rounds.turn(number) for number, op in enumerate(rounds.ops)}
    assert [named[name] for name in ("load", "dot", "store")] == [Turn.EACH, Turn.EACH, Turn.LAST]


def test_joined_rounds_are_faster() -> None:
    """The last products of a block and the first loads of the next one overlap."""
    with Device.open("model:base?memory=16M&cycles=on") as device:
        a, b = (device.zeros((256, 256), BF16) for _ in range(2))
        x, c = (device.zeros((256, 256), np.float32) for _ in range(2))
        constants = {"rows": 32, "columns": 128, "depth": 128, "extra": ""}
        for _ in range(2):
            with device.stream.timed() as timing:
                product[2, 8](a, b, x, c, **constants)
        assert timing.cycles < 1.05 * 256**3 / 256, "each of 16 blocks waited for its first loads"


@pytest.mark.parametrize("depth", [32, 64])
def test_blocks_that_wait_for_the_one_before(base: Device, depth: int) -> None:
    """A load of the next block waits for a store, which waits for a load behind it."""
    random = Random(depth)
    arrays = {
        "a": numbers(random, 48, 200),
        "b": numbers(random, 200, 80),
        "x": numbers(random, 48, 80, dtype=np.float32),
    }
    arrays["c"] = numbers(random, 64, 80, dtype=np.float32)
    constants = {"rows": 16, "depth": depth, "more": True}
    agree(base, partial(chained.function, types_of(arrays), constants, (3, 1, 1)), arrays, tile.Schedule())


@pytest.mark.some(12)
@pytest.mark.parametrize("seed", range(80))
def test_random_loops(base: Device, seed: int) -> None:
    """On the model, and by the checker of races and deadlocks."""
    drawn_agrees(base, drawn(seed))


def test_enough_of_them_are_joined() -> None:
    assert sum(max(joined(prepared(*drawn(seed))), default=0) > 1 for seed in range(80)) >= 15


@pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
@pytest.mark.slow
def test_random_loops_on_the_gateware() -> None:
    with Device.open("fast:base?memory=4M") as device:
        for seed in range(80, 110):
            drawn_agrees(device, drawn(seed))
