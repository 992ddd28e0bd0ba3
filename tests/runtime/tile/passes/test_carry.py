"""What a loop carries stays in its place, and is copied only where it must be."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.lowering import lower

BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def weighted(a: Any, b: Any, out: Any) -> None:
    """Sums that are scaled in each round before more is added, as in attention."""
    total = tile.full((20, 40), 1.0)
    for k in range(0, a.shape[1], 16):
        total = tile.dot(tile.load(a, (0, k), (20, 16)), tile.load(b, (k, 0), (16, 40)), total * 0.5)
    tile.store(out, (0, 0), total)


@tile.kernel
def still_needed(a: Any, b: Any, out: Any) -> None:
    """The sums of the round before are read behind what is made of them."""
    total, before = tile.full((20, 40), 1.0), tile.zeros((20, 40))
    for k in range(0, a.shape[1], 16):
        after = tile.dot(tile.load(a, (0, k), (20, 16)), tile.load(b, (k, 0), (16, 40)), total * 0.5)
        before = before + total
        total = after
    tile.store(out, (0, 0), total + before)


@tile.kernel
def by_column(a: Any, b: Any, out: Any) -> None:
    """What is carried is a column that is spread over the sums."""
    total = tile.full((20, 1), 1.0)
    sums = tile.zeros((20, 40))
    for k in range(0, a.shape[1], 16):
        sums = tile.dot(tile.load(a, (0, k), (20, 16)), tile.load(b, (k, 0), (16, 40)), sums * total)
        total = total * 0.5
    tile.store(out, (0, 0), sums)


@tile.kernel
def anew(a: Any, b: Any, out: Any) -> None:
    """The last round's product alone."""
    total = tile.full((20, 40), 1.0)
    for k in range(0, a.shape[1], 16):
        total = tile.dot(tile.load(a, (0, k), (20, 16)), tile.load(b, (k, 0), (16, 40)), tile.zeros((20, 40)))
    tile.store(out, (0, 0), total)


@tile.kernel
def in_turn(a: Any, b: Any, out: Any) -> None:
    """Products one behind the other in a round, and a loop in a loop: all add to one place."""
    total = tile.full((20, 40), 1.0)
    for half in range(0, a.shape[1], 32):
        for k in (0, 16):
            total = tile.dot(tile.load(a, (0, half + k), (20, 16)), tile.load(b, (half + k, 0), (16, 40)), total)
    for half in range(0, a.shape[1], 32):
        for k in range(0, 32, 16):
            total = tile.dot(tile.load(a, (0, half + k), (20, 16)), tile.load(b, (half + k, 0), (16, 40)), total)
    tile.store(out, (0, 0), total)


@tile.kernel
def scaled_before(a: Any, b: Any, out: Any) -> None:
    """Products one behind the other, the first of which adds to a chain."""
    total = tile.full((20, 40), 1.0)
    for half in range(0, a.shape[1], 32):
        total = total * 0.5
        for k in (0, 16):
            total = tile.dot(tile.load(a, (0, half + k), (20, 16)), tile.load(b, (half + k, 0), (16, 40)), total)
    tile.store(out, (0, 0), total)


@tile.kernel
def exchanged(a: Any, b: Any, out: Any) -> None:
    """What is carried changes its place: by itself, by way of products, and by way of a loop."""
    x, y = tile.full((20, 40), 1.0), tile.zeros((20, 40))
    for _ in range(0, a.shape[1], 16):
        x, y = y, x
        x = x + 1.0
    for k in range(0, a.shape[1], 16):
        left, right = tile.load(a, (0, k), (20, 16)), tile.load(b, (k, 0), (16, 40))
        x, y = tile.dot(left, right, y), tile.dot(left, right, x)
    for _ in range(0, a.shape[1], 16):
        for _ in range(2):
            x, y = x + 1.0, y * 2.0
        x, y = y, x
    for _ in range(3):
        x, y = y, x
    tile.store(out, (0, 0), x - y * 0.5)


@tile.kernel
def another_name(a: Any, b: Any, out: Any) -> None:
    """What is carried is needed as the sums of a product, and as what a loop leaves, behind what takes its place."""
    x, y, most = (tile.full((20, 40), number) for number in (1.0, 2.0, 0.0))
    for k in range(0, a.shape[1], 16):
        before = tile.dot(tile.load(a, (0, k), (20, 16)), tile.load(b, (k, 0), (16, 40)), x)
        x = most * 2.0
        most = most + before * 3.0
    for _ in range(4):
        before = y
        for _ in range(2):
            before = before * 2.0 + 1.0
        y = most - 2.0
        most = most + before * 3.0
    tile.store(out, (0, 0), x + y + most)


def reference(kernel: Any, a: Any, b: Any) -> Any:
    total, before, factor = np.ones((20, 40), np.float32), np.zeros((20, 40), np.float32), np.float32(1)
    sums = np.zeros((20, 40), np.float32)
    for k in range(0, a.shape[1], 16):
        product = a[:, k : k + 16].astype(np.float32) @ b[k : k + 16].astype(np.float32)
        before += total
        total = product + (0 if kernel is anew else total / 2)
        sums, factor = sums * factor + product, factor / 2
    return sums if kernel is by_column else total + before if kernel is still_needed else total


def test_products_in_turn(base: Device) -> None:
    random = np.random.default_rng(4)
    a, b = (random.integers(-4, 5, shape).astype(BF16) for shape in ((20, 64), (64, 40)))
    arrays = {"a": a, "b": b, "out": np.zeros((20, 40), np.float32)}
    function = in_turn.function(types_of(arrays), {}, (1, 1, 1))
    lower(function, 16)
    assert not [op for op in function.body.walk() if op.name == "chain" and op.operands]
    found = kernel_agrees(base, in_turn, arrays)
    assert (found["out"].view(np.float32) == 1 + 2 * (a.astype(np.float32) @ b.astype(np.float32))).all()


@pytest.mark.parametrize("kernel", [scaled_before, exchanged, another_name], ids=lambda kernel: str(kernel.name))
def test_places(base: Device, kernel: tile.Kernel) -> None:
    """Nothing is written where something is that is still needed."""
    random = np.random.default_rng(4)
    a, b = (random.integers(-4, 5, shape).astype(BF16) for shape in ((20, 64), (64, 40)))
    kernel_agrees(base, kernel, {"a": a, "b": b, "out": np.zeros((20, 40), np.float32)})


@pytest.mark.parametrize(("kernel", "copies"), [(weighted, 0), (still_needed, 1), (by_column, 0), (anew, 0)])
def test_copies(base: Device, kernel: tile.Kernel, copies: int) -> None:
    random = np.random.default_rng(4)
    a, b = (random.integers(-4, 5, shape).astype(BF16) for shape in ((20, 64), (64, 40)))
    arrays = {"a": a, "b": b, "out": np.zeros((20, 40), np.float32)}
    function = kernel.function(types_of(arrays), {}, (1, 1, 1))
    lower(function, 16)
    (loop,) = (op for op in function.body.ops if op.body is not None)
    assert loop.body is not None
    plain = [
        op for op in loop.body.ops if op.name == "chain" and op.operands and not any(op.attributes["stages"].words())
    ]
    assert len(plain) == copies
    found = kernel_agrees(base, kernel, arrays)
    assert (found["out"].view(np.float32) == reference(kernel, a, b)).all()
