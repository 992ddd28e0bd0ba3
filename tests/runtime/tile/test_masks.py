"""Iotas, indices as operands, and masks made of them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees

from sley.runtime import Device, tile
from sley.sim.engines.options import default_engine

BF16, FP32, INT32, INT8 = (np.dtype(t) for t in (ml_dtypes.bfloat16, np.float32, np.int32, np.int8))
RNG = np.random.default_rng(7)
SHAPES = [(1, 1), (1, 40), (40, 1), (16, 16), (17, 33), (3, 70)]


@tile.kernel
def numbers(out: Any, rows: int = 16, columns: int = 16) -> None:
    """row * 1000 + column of the whole array, in its type."""
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    values = (tile.iota((rows, columns), 0) + row) * 1000 + (column + tile.iota((rows, columns), 1))
    tile.store(out, (row, column), values.to(out.dtype))


@tile.kernel
def causal(x: Any, out: Any, rows: int = 16, columns: int = 16, fill: float = -1.0) -> None:
    """What is behind the diagonal is ``fill``."""
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    shape = (rows, columns)
    values = tile.load(x, (row, column), shape)
    seen = tile.iota(shape, 1) + column <= tile.iota(shape, 0) + row
    tile.store(out, (row, column), tile.where(seen, values, fill).to(out.dtype))


@tile.kernel
def compared(x: Any, out: Any, kind: str) -> None:
    """Everything that a mask may be, chosen from two tiles, or from numbers."""
    shape = x.shape
    values = tile.load(x, (0, 0), shape) * 1.0
    row, column = tile.iota(shape, 0), tile.iota(shape, 1)
    masks = {
        "lt": lambda: row < column,
        "ge": lambda: row >= column * 2 - 3,
        "eq": lambda: row == column,
        "ne": lambda: row != column + 1,
        "and": lambda: (row < 5) & (column > 2),
        "or": lambda: (row < 5) | (column > 2),
        "product": lambda: (row < 5) * (column == 2),
        "not": lambda: ~((row < 5) & (column != 2)),
        "is": lambda: (row < 5) == 1,
        "far": lambda: row * 40000 < column,
        "wraps": lambda: row + (2**31 - 1) < column,
    }
    mask = masks[kind]()
    first = tile.where(mask, values, -values)
    second = tile.where(mask, 3.0, values)
    tile.store(out, (0, 0), first + tile.where(mask, second, 5.0) + mask.to(np.float32) + tile.where(mask, 7.0, 8.0))


@tile.kernel
def running(lengths: Any, x: Any, out: Any, columns: int = 16) -> None:
    """A mask of numbers from memory in a loop, and indices that change from round to round."""
    rows = x.shape[0]
    length = tile.load(lengths, 0, (rows, 1), axes=(0, None))
    total = tile.zeros((rows, columns))
    for column in range(0, x.shape[1], columns):
        values = tile.load(x, (0, column), (rows, columns))
        inside = tile.where(tile.iota((rows, columns), 1) + column < length, values, 0.0)
        total = total + inside * column + tile.where(tile.iota((1, columns), 1) == column, 1.0, 0.0)
    tile.store(out, (0, 0), total.sum(1))


@tile.kernel
def one_hot(index: Any, out: Any) -> None:
    shape = out.shape
    tile.store(out, (0, 0), (tile.load(index, (0, 0), (shape[0], 1)) == tile.iota(shape, 1)).to(out.dtype))


@tile.kernel
def carried(out: Any) -> None:
    """An index that a loop carries has no range that is known."""
    at = 0
    for number in range(5):
        row = tile.where(tile.iota((1, 20), 1) < at, 1.0, 2.0) + (tile.iota((1, 20), 1, np.float32) - at)
        tile.store(out, (number, 0), row)
        at = at + number


@pytest.mark.some(12)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [INT32, FP32, BF16, INT8], ids=str)
def test_numbers(base: Device, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    for rows, columns in ((16, 16), (7, 37), shape):
        grid = (-(-shape[1] // columns), -(-shape[0] // rows), 1)
        found = kernel_agrees(base, numbers, {"out": np.zeros(shape, dtype)}, grid, rows=rows, columns=columns)
        wanted = np.arange(shape[0])[:, None] * 1000 + np.arange(shape[1])
        wanted = np.clip(wanted, -128, 127) if dtype is INT8 else wanted
        assert (found["out"].view(dtype) == wanted.astype(dtype)).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [INT32, FP32, BF16, INT8], ids=str)
def test_causal(base: Device, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    x = RNG.integers(-128, 128, shape).astype(dtype)
    for rows, columns in ((16, 16), (7, 37)):
        grid = (-(-shape[1] // columns), -(-shape[0] // rows), 1)
        found = kernel_agrees(
            base, causal, {"x": x, "out": np.zeros(shape, dtype)}, grid, rows=rows, columns=columns, fill=-1
        )
        wanted = np.where(np.tri(*shape, dtype=bool), x, np.array(-1).astype(dtype))
        assert (found["out"].view(dtype) == wanted).all()


KINDS = ("lt", "ge", "eq", "ne", "and", "or", "product", "not", "is", "far", "wraps")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (9, 40), (33, 7)], ids=str)
def test_compared(base: Device, kind: str, shape: tuple[int, int]) -> None:
    x = RNG.standard_normal(shape).astype(np.float32)
    found = kernel_agrees(base, compared, {"x": x, "out": np.zeros(shape, FP32)}, kind=kind)
    row, column = np.arange(shape[0])[:, None], np.arange(shape[1])
    mask = {
        "lt": row < column,
        "ge": row >= column * 2 - 3,
        "eq": row == column,
        "ne": row != column + 1,
        "and": (row < 5) & (column > 2),
        "or": (row < 5) | (column > 2),
        "product": (row < 5) & (column == 2),
        "not": ~((row < 5) & (column != 2)),
        "is": (row < 5) & (column >= 0),
        "far": row * 40000 < column,
        "wraps": np.where(row == 0, False, column >= 0),
    }[kind]
    wanted = np.where(mask, x, -x) + np.where(mask, np.float32(3), np.float32(5))
    wanted = (wanted + mask.astype(np.float32)) + np.where(mask, np.float32(7), np.float32(8))
    assert (found["out"].view(FP32) == wanted).all()


@pytest.mark.parametrize("shape", [(1, 1), (9, 40), (33, 64)], ids=str)
def test_numbers_from_memory(base: Device, shape: tuple[int, int]) -> None:
    x = RNG.integers(-9, 9, shape).astype(np.float32)
    lengths = RNG.integers(0, shape[1] + 1, shape[0]).astype(np.int32)
    found = kernel_agrees(base, running, {"lengths": lengths, "x": x, "out": np.zeros((shape[0], 1), FP32)})
    column = np.arange(shape[1])
    inside = np.where(column < lengths[:, None], x, 0) * (column // 16 * 16)
    ones = sum(1 for start in range(0, shape[1], 16) if start < 16)
    assert (found["out"].view(FP32)[:, 0] == inside.sum(1) + ones).all()


@pytest.mark.parametrize("shape", [(1, 1), (20, 5), (33, 40)], ids=str)
def test_one_hot(base: Device, shape: tuple[int, int]) -> None:
    index = RNG.integers(-1, shape[1] + 1, (shape[0], 1)).astype(np.int32)
    found = kernel_agrees(base, one_hot, {"index": index, "out": np.zeros(shape, INT8)})
    assert (found["out"] == (index == np.arange(shape[1]))).all()


def test_carried(base: Device) -> None:
    found = kernel_agrees(base, carried, {"out": np.zeros((5, 20), FP32)})
    at = np.array([0, 0, 1, 3, 6])[:, None]
    lane = np.arange(20)
    assert (found["out"].view(FP32) == np.where(lane < at, 1.0, 2.0) + (lane - at)).all()


def test_masks_cost_no_instruction(base: Device) -> None:
    """A causal mask is a stage of the chain that there is anyway."""
    from tile_agreement import types_of

    from sley.runtime.tile.lowering import lower

    x = np.zeros((64, 64), BF16)
    function = causal.function(types_of({"x": x, "out": x}), {"rows": 32, "columns": 32, "fill": -1.0}, (2, 2, 1))
    lower(function, 16)
    assert [op.name for op in function.body.walk() if op.name in ("chain", "iota")] == ["chain"]


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
def test_on_the_gateware() -> None:
    with Device.open("fast:base?memory=4M") as device:
        kernel_agrees(device, numbers, {"out": np.zeros((33, 40), INT32)}, (2, 2, 1), rows=17, columns=21)
        x = RNG.standard_normal((33, 40)).astype(BF16)
        kernel_agrees(device, causal, {"x": x, "out": np.zeros_like(x)}, (2, 2, 1), rows=17, columns=21)
        for kind in KINDS:
            kernel_agrees(device, compared, {"x": x.astype(FP32), "out": np.zeros(x.shape, FP32)}, kind=kind)
