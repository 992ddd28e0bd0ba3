"""Loads a round ahead: where the queue of another unit is full without, and only if their places are known then."""

from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import agree, kernel_agrees, types_of

from sley.abi.config import preset
from sley.runtime import Device, tile
from sley.runtime.tile.compiler import prepare
from sley.runtime.tile.ir import Function

BASE = preset("base")
BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def carried_place(a: Any, b: Any, c: Any) -> None:
    """Where a round loads depends on the round before."""
    at, total = 0, tile.zeros((16, 64))
    for _ in range(3):
        column = tile.maximum(tile.minimum(at, 160), 0)
        total = tile.dot(tile.load(a, (0, column), (16, 80)), tile.load(b, (column, 0), (80, 64)), total)
        at = at + 80
    tile.store(c, (0, 0), total)


@tile.kernel
def downwards(a: Any, b: Any, c: Any) -> None:
    """A loop that counts down, around one that counts up."""
    for row in range(32, -1, -16):
        total = tile.zeros((16, 64))
        for k in range(0, 240, 80):
            total = tile.dot(tile.load(a, (row, k), (16, 80)), tile.load(b, (k, 0), (80, 64)), total)
        tile.store(c, (row, 0), total)


@tile.kernel
def in_parts(a: Any, b: Any, c: Any) -> None:
    """A sum of products, without a loop."""
    for column in range(0, c.shape[1], 64):
        total = tile.zeros((16, 64))
        for k in (0, 80, 160):
            total = tile.dot(tile.load(a, (0, k), (16, 80)), tile.load(b, (k, column), (80, 64)), total)
        tile.store(c, (0, column), total)


def operands(m: int, k: int, n: int) -> dict[str, Any]:
    random = np.random.default_rng(k)
    a, b = (random.integers(-4, 5, shape).astype(BF16) for shape in ((m, k), (k, n)))
    return {"a": a, "b": b, "c": np.zeros((m, n), np.float32)}


@pytest.mark.parametrize(
    ("shape", "ahead"), [((32, 64, 32), 0), ((32, 64, 33), 1), ((32, 64, 64), 1), ((32, 16, 128), 0)], ids=str
)
def test_which_loops(shape: tuple[int, int, int], ahead: int) -> None:
    """Those whose products have more instructions in a round than half of the queue holds."""
    types = types_of(operands(64, 256, 128))
    function = kernels.matmul.function(types, {"shape": shape, "activation": None}, (1, 1, 1))
    assert len(prepare(function, BASE).early) == ahead
    function = kernels.matmul.function(types, {"shape": shape, "activation": None}, (1, 1, 1))
    assert prepare(function, BASE, tile.Schedule(prefetch=False)).early == {}


def test_products_of_one_sum_are_no_stages(base: Device) -> None:
    """Loads alone are ahead: the second product needs the first one, not what the vector unit makes of it."""
    arrays = operands(16, 240, 200)
    (rounds,) = prepare(in_parts.function(types_of(arrays), {}, (1, 1, 1)), BASE).early.values()
    assert {op.name for op in rounds.ahead} == {"load"}
    kernel_agrees(base, in_parts, arrays)


@pytest.mark.some(3)
@pytest.mark.parametrize(("m", "k", "n"), [(32, 160, 64), (33, 161, 65), (70, 400, 130)])
@pytest.mark.parametrize("shape", [(32, 64, 80), (16, 128, 96)], ids=str)
def test_results(base: Device, m: int, k: int, n: int, shape: tuple[int, int, int]) -> None:
    arrays = operands(m, k, n)
    grid = (-(-n // shape[1]), -(-m // shape[0]), 1)
    found = kernel_agrees(base, kernels.matmul, arrays, grid, shape=shape)
    a, b = arrays["a"].astype(np.float32), arrays["b"].astype(np.float32)
    assert (found["c"].view(np.float32) == a @ b).all()


@pytest.mark.parametrize(("kernel", "ahead"), [(carried_place, 0), (downwards, 1)])
def test_places(base: Device, kernel: tile.Kernel, ahead: int) -> None:
    arrays = operands(48 if ahead else 16, 240, 64)
    assert len(prepare(kernel.function(types_of(arrays), {}, (1, 1, 1)), BASE).early) == ahead
    found = kernel_agrees(base, kernel, arrays)
    a, b = arrays["a"].astype(np.float32), arrays["b"].astype(np.float32)
    assert (found["c"].view(np.float32) == a @ b).all()


@pytest.mark.slow
def test_it_is_faster() -> None:
    with Device.open("model:base?memory=16M&cycles=on&values=off") as device:
        arrays = [device.zeros((256, 256), BF16) for _ in range(3)]
        cycles = []
        for prefetch in (True, False):
            for _ in range(2):
                with device.stream.timed() as timing:
                    kernels.matmul[2, 8](*arrays, shape=(32, 128, 64), schedule=tile.Schedule(prefetch=prefetch))
            cycles.append(timing.cycles)
        assert cycles[0] < 0.9 * cycles[1]


@tile.kernel
def crowded(a: Any, b: Any, c: Any) -> None:
    """A second load in each round takes the rows of the first one's tile, as there is no room beside it."""
    total = tile.zeros((16, 240))
    for k in range(0, 480, 240):
        total = tile.dot(tile.load(a, (0, k), (16, 240)), tile.load(b, (k, 0), (240, 240)), total)
        total = tile.dot(tile.load(a, (16, k), (16, 240)), tile.load(b, (k, 240), (240, 240)), total)
    tile.store(c, (0, 0), total)


def test_rows_that_are_still_needed(base: Device) -> None:
    arrays = operands(32, 480, 480)
    arrays["c"] = np.zeros((16, 240), np.float32)
    prepared = prepare(crowded.function(types_of(arrays), {}, (1, 1, 1)), BASE)
    assert len({buffer.first for buffer in prepared.placement.buffers if buffer.rows == 3600}) == 1
    assert prepared.early == {}
    found = kernel_agrees(base, crowded, arrays)
    a, b = arrays["a"].astype(np.float32), arrays["b"].astype(np.float32)
    assert (found["c"].view(np.float32) == a[:16] @ b[:, :240] + a[16:] @ b[:, 240:]).all()


@tile.kernel
def attention(q: Any, k: Any, v: Any, out: Any, rows: int = 16, keys: int = 32) -> None:
    """Products of what is loaded, and products of what the vector unit makes of these."""
    row, depth = tile.block_id() * rows, q.shape[1]
    queries = tile.load(q, (row, 0), (rows, depth))
    largest, sums, total = tile.full((rows, 1), -3e38), tile.zeros((rows, 1)), tile.zeros((rows, depth))
    for at in range(0, k.shape[0], keys):
        scores = tile.dot(queries, tile.load(k, (at, 0), (depth, keys), axes=(1, 0)), tile.zeros((rows, keys)))
        top = tile.maximum(largest, scores.max(1))
        powers, factor = tile.exp(scores - top), tile.exp(largest - top)
        sums = sums * factor + powers.sum(1)
        total = tile.dot(powers.to(q.dtype), tile.load(v, (at, 0), (keys, depth)), total * factor)
        largest = top
    tile.store(out, (row, 0), (total / sums).to(out.dtype))


@pytest.mark.some(2)
@pytest.mark.parametrize("rows", [16, 24])
@pytest.mark.parametrize("buffer", [1, 2, 4])
def test_products_ahead(base: Device, rows: int, buffer: int) -> None:
    """With slots to spare, the first product of a round is issued before the second one of the round before."""
    random = np.random.default_rng(rows)
    arrays = {name: random.standard_normal((96, 48)).astype(BF16) for name in "qkv"}
    arrays["out"] = np.zeros((96, 48), np.float32)
    grid, schedule = (-(-96 // rows), 1, 1), tile.Schedule(buffer=buffer)

    def function() -> Function:
        return attention.function(types_of(arrays), {"rows": rows, "keys": 32}, grid)

    prepared = prepare(function(), BASE, schedule)
    assert ["dot" in {op.name for op in rounds.ahead} for rounds in prepared.early.values()] == [buffer > 1]
    agree(base, function, arrays, schedule)
    scores = np.exp(arrays["q"].astype(np.float64) @ arrays["k"].astype(np.float64).T)
    wanted = scores / scores.sum(1, keepdims=True) @ arrays["v"].astype(np.float64)
    found = kernel_agrees(base, attention, arrays, grid, rows=rows, keys=32)
    np.testing.assert_allclose(found["out"].view(np.float32), wanted, rtol=0.1, atol=0.05)


@tile.kernel
def scaled_rows(x: Any, out: Any, rows: int = 8) -> None:
    place = tile.block_id() * rows, 0
    values = tile.load(x, place, (rows, x.shape[1]))
    tile.store(out, place, (values / values.sum(1)).to(out.dtype))


@pytest.mark.parametrize(("columns", "ahead"), [(64, 0), (224, 0), (512, 1)])
def test_rows_of_many_chunks(base: Device, columns: int, ahead: int) -> None:
    """Instructions of the vector unit fill its queue, too: of reductions, and of chains that read a column again."""
    x = np.random.default_rng(columns).uniform(1, 2, (40, columns)).astype(BF16)
    arrays = {"x": x, "out": np.zeros((40, columns), BF16)}
    found = prepare(scaled_rows.function(types_of(arrays), {"rows": 8}, (5, 1, 1)), BASE)
    assert sum(len(rounds.ahead) for rounds in found.early.values()) == ahead
    kernel_agrees(base, scaled_rows, arrays, (5, 1, 1))
