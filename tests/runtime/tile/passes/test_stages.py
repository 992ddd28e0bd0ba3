"""Loops in stages: the vector unit's work between two products is issued a round ahead, and bits stay the same."""

from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import drawn_agrees, types_of

from sley.abi.config import preset
from sley.runtime import Device, tile
from sley.runtime.tile.compiler import Prepared, prepare
from sley.runtime.tile.ir import Function
from sley.runtime.tile.passes.rounds import Segment
from sley.sim.engines.options import default_engine

BASE = preset("base")
BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def attention(q: Any, k: Any, v: Any, out: Any, turned: Any, rows: int, keys: int, rounded: bool, memory: bool) -> None:
    """Queries are lanes. ``rounded``: sums of weights are those of bf16. ``memory``: results turn on their way."""
    row, depth, width = tile.block_id() * rows, q.shape[1], v.shape[1]
    queries = tile.load(q, (row, 0), (rows, depth)).T
    largest, sums, total = tile.full((1, rows), -3e38), tile.zeros((1, rows)), tile.zeros((width, rows))
    for at in range(0, k.shape[0], keys):
        scores = tile.dot(tile.load(k, (at, 0), (keys, depth)), queries)
        top = tile.maximum(largest, scores.max(0))
        powers, factor = tile.exp(scores - top), tile.exp(largest - top)
        weights = powers.to(q.dtype)
        sums = sums * factor + (weights.to(np.float32) if rounded else powers).sum(0)
        total = tile.dot(tile.load(v, (at, 0), (width, keys), axes=(1, 0)), weights, total * factor)
        largest = top
    result = (total / sums).to(out.dtype)
    if memory:
        tile.store(turned, (0, row), result)
        tile.store(out, (row, 0), tile.load(turned, (0, row), (rows, width), axes=(1, 0)))
    else:
        tile.store(out, (row, 0), result.T)


@tile.kernel
def layers(x: Any, w: Any, u: Any, out: Any, rows: int, hidden: int, end: str) -> None:
    """Two layers, the hidden one in pieces. ``end``: of a round, what follows the second product: nothing, a scale, or
    a sum with what was made ahead for it."""
    row, depth, width = tile.block_id() * rows, x.shape[1], u.shape[1]
    values, total = tile.load(x, (row, 0), (rows, depth)), tile.zeros((rows, width))
    for at in range(0, w.shape[1], hidden):
        inner = tile.relu(tile.dot(values, tile.load(w, (0, at), (depth, hidden))))
        highest = inner.max(1) + 1.0
        total = tile.dot((inner / highest).to(x.dtype), tile.load(u, (at, 0), (hidden, width)), total)
        if end == "scale":
            total = total * 0.5
        if end == "sum":
            total = total + highest
    tile.store(out, (row, 0), total)


def numbers(random: Random, *shape: int) -> Any:
    return np.random.default_rng(random.randrange(1 << 30)).standard_normal(shape).astype(BF16)


def attention_case(random: Random) -> tuple[Any, dict[str, Any], dict[str, Any], tuple[int, int, int]]:
    queries, count = random.choice((1, 16, 37, 80)), random.choice((16, 31, 96, 130))
    depth, width = random.choice((16, 24, 64)), random.choice((16, 40, 64))
    arrays = {
        "q": numbers(random, queries, depth),
        "k": numbers(random, count, depth),
        "v": numbers(random, count, width),
    }
    arrays |= {"out": np.zeros((queries, width), BF16), "turned": np.zeros((width, queries), BF16)}
    rows = random.choice((5, 16, 24, 32))
    constants = {"rows": rows, "keys": random.choice((16, 24, 32, 64))}
    constants |= {"rounded": random.random() < 0.5, "memory": random.random() < 0.5}
    return attention, arrays, constants, (-(-queries // rows), 1, 1)


def layers_case(random: Random) -> tuple[Any, dict[str, Any], dict[str, Any], tuple[int, int, int]]:
    batch, depth = random.choice((1, 16, 45)), random.choice((16, 24, 64))
    inside, width = random.choice((16, 100, 160)), random.choice((16, 40, 64))
    arrays = {
        "x": numbers(random, batch, depth),
        "w": numbers(random, depth, inside),
        "u": numbers(random, inside, width),
    }
    arrays["out"] = np.zeros((batch, width), np.float32)
    rows = random.choice((8, 16, 33))
    constants = {"rows": rows, "hidden": random.choice((16, 24, 32)), "end": random.choice(("", "scale", "sum"))}
    return layers, arrays, constants, (-(-batch // rows), 1, 1)


def prepared(kernel: Any, arrays: dict[str, Any], constants: dict[str, Any], grid: Any, buffer: int = 4) -> Prepared:
    function: Function = kernel.function(types_of(arrays), constants, grid)
    return prepare(function, BASE, tile.Schedule(buffer=buffer))


def staged(found: Prepared) -> list[list[str]]:
    """Of loops, what the vector unit does ahead."""
    return [
        [op.name for op, when in zip(rounds.ops, rounds.segments, strict=True) if when is Segment.AHEAD]
        for rounds in found.early.values()
    ]


def drawn(seed: int) -> tuple[Any, dict[str, Any], dict[str, Any], tuple[int, int, int], int]:
    random = Random(seed)
    case = random.choice((attention_case, attention_case, layers_case))(random)
    return *case, random.choice((1, 2, 4))


@pytest.mark.parametrize("rounded", [True, False])
def test_what_is_ahead(rounded: bool) -> None:
    """The weights of a round and what they need; sums and their scale stay where the product is."""
    random = Random(1)
    arrays = {name: numbers(random, 256, 64) for name in "qkv"}
    arrays |= {"out": np.zeros((256, 64), BF16), "turned": np.zeros((64, 256), BF16)}
    constants = {"rows": 32, "keys": 64, "rounded": rounded, "memory": True}
    found = prepared(attention, arrays, constants, (8, 1, 1))
    (ahead,) = staged(found)
    assert "reduce" in ahead
    assert ahead.count("reduce") == 1, "sums of weights are not needed ahead"
    assert staged(prepared(attention, arrays, constants, (8, 1, 1), buffer=1)) == [[]], "but loads"


@pytest.mark.some(10)
@pytest.mark.parametrize("seed", range(60))
def test_random_loops(base: Device, seed: int) -> None:
    """On the model, and by the checker of races and deadlocks."""
    drawn_agrees(base, drawn(seed))


def test_enough_of_them_are_staged() -> None:
    assert sum(bool([s for s in staged(prepared(*drawn(seed))) if s]) for seed in range(60)) >= 15


@pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
@pytest.mark.slow
def test_random_loops_on_the_gateware() -> None:
    with Device.open("fast:base?memory=4M") as device:
        for seed in range(60, 80):
            drawn_agrees(device, drawn(seed))
