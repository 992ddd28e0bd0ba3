"""Loads a round ahead: where the queue of another unit is full without, and only if their places are known then."""

from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.abi.config import preset
from sley.runtime import Device, tile
from sley.runtime.tile.compiler import prepare

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


def operands(m: int, k: int, n: int) -> dict[str, Any]:
    random = np.random.default_rng(k)
    a, b = (random.integers(-4, 5, shape).astype(BF16) for shape in ((m, k), (k, n)))
    return {"a": a, "b": b, "c": np.zeros((m, n), np.float32)}


@pytest.mark.parametrize(
    ("shape", "ahead"), [((32, 64, 64), 0), ((32, 64, 65), 1), ((32, 128, 64), 1), ((32, 16, 128), 0)], ids=str
)
def test_which_loops(shape: tuple[int, int, int], ahead: int) -> None:
    """Those with more products in a round than half of the queue's instructions."""
    types = types_of(operands(64, 256, 128))
    function = kernels.matmul.function(types, {"shape": shape, "activation": None}, (1, 1, 1))
    assert len(prepare(function, BASE).ahead) == ahead
    function = kernels.matmul.function(types, {"shape": shape, "activation": None}, (1, 1, 1))
    assert prepare(function, BASE, tile.Schedule(prefetch=False)).ahead == frozenset()


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
    assert len(prepare(kernel.function(types_of(arrays), {}, (1, 1, 1)), BASE).ahead) == ahead
    found = kernel_agrees(base, kernel, arrays)
    a, b = arrays["a"].astype(np.float32), arrays["b"].astype(np.float32)
    assert (found["c"].view(np.float32) == a @ b).all()


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
