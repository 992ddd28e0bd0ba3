"""Rows by their numbers: gathered, transposed on the way in, as weights, and scattered."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.abi.config import preset
from sley.runtime import Device, tile
from sley.sim.engines.options import default_engine

BF16, FP32, INT32, INT8 = (np.dtype(t) for t in (ml_dtypes.bfloat16, np.float32, np.int32, np.int8))
RNG = np.random.default_rng(11)


def values(*shape: int, dtype: np.dtype[Any] = BF16) -> np.ndarray[Any, Any]:
    return RNG.integers(-128, 128, shape).astype(dtype)


@tile.kernel
def embedding(table: Any, index: Any, out: Any, rows: int = 16, columns: int = 16) -> None:
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    numbers = tile.load(index, row, (1, rows))
    tile.store(out, (row, column), tile.gather(table, (0, column), numbers, columns))


@tile.kernel
def by_bytes(table: Any, offsets: Any, out: Any, rows: int = 16) -> None:
    """A list that Load brings is the list of the next load: nothing in between but the order of both."""
    for row in range(0, offsets.shape[1], rows):
        found = tile.gather(table, (0, 0), tile.load(offsets, (0, row), (1, rows)), table.shape[1], in_bytes=True)
        tile.store(out, (row, 0), (found * 2.0).to(out.dtype))


@tile.kernel
def turned(table: Any, index: Any, out: Any) -> None:
    """Rows as columns, of one plane of three axes, with numbers of two sources."""
    count = index.shape[0]
    for plane in range(table.shape[0]):
        numbers = tile.load(index, 0, (count, 1), axes=(0, None)) + plane - plane
        tile.store(out, (plane, 0, 0), tile.gather(table, (plane, 0, 0), numbers, table.shape[2]).T)


@tile.kernel
def elements(table: Any, index: Any, out: Any, columns: bool) -> None:
    """Single elements of a vector."""
    count = index.shape[0]
    found = tile.gather(table, 0, tile.load(index, 0, (1, count))) * 1
    tile.store(out, (0, 0), found.to(out.dtype) if columns else found.to(out.dtype).T)


@tile.kernel
def multiplied(a: Any, table: Any, index: Any, out: Any, kind: str) -> None:
    """Products with gathered rows or columns of weights."""
    rows = tile.load(a, (0, 0), a.shape)
    weights = tile.gather(table, (0, 0), tile.load(index, 0, (1, index.shape[0])), table.shape[1])
    tile.store(out, (0, 0), tile.dot(rows, weights if kind == "rows" else weights.T))


@tile.kernel
def counted(table: Any, index: Any, out: Any, rows: int = 8) -> None:
    """Only as many rows as there are numbers."""
    for row in range(0, index.shape[0], rows):
        numbers = tile.load(index, row, (1, rows))
        found = tile.gather(table, (0, 0), numbers, table.shape[1], fill=7, count=index.shape[0] - row)
        tile.scatter(out, (0, 0), numbers, found, count=index.shape[0] - row)


@tile.kernel
def scattered(x: Any, index: Any, out: Any, rows: int = 8, columns: int = 16) -> None:
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    numbers = tile.load(index, row, (1, rows))
    tile.scatter(out, (0, column), numbers, tile.load(x, (row, column), (rows, columns)), count=index.shape[0] - row)


@tile.kernel
def histogram(index: Any, out: Any) -> None:
    """What a round scatters the next one gathers."""
    for number in range(index.shape[0]):
        numbers = tile.load(index, number, (1, 1))
        tile.scatter(out, 0, numbers, tile.gather(out, 0, numbers) + 1)


@tile.kernel
def before_and_behind(x: Any, index: Any, out: Any) -> None:
    """The same rows, and the same tile, before they are stored and behind that."""
    listed, size = tile.load(index, 0, (1, index.shape[0])), x.shape[1]
    rows, whole = tile.gather(x, (0, 0), listed, size), tile.load(x, (0, 0), x.shape)
    tile.scatter(x, (0, 0), listed, rows + 1)
    again = tile.gather(x, (0, 0), listed, size)
    tile.store(out, (0, 0), rows * 1000 + again)
    tile.store(out, (x.shape[0], 0), whole * 1000 + tile.load(x, (0, 0), x.shape))


def numbers(count: int, below: int) -> np.ndarray[Any, Any]:
    return RNG.integers(0, below, count).astype(np.int32)


@pytest.mark.parametrize(("rows", "size", "count"), [(1, 1, 1), (50, 40, 33), (7, 100, 16), (300, 3, 50)])
@pytest.mark.parametrize("dtype", [BF16, FP32, INT32, INT8], ids=str)
def test_rows(base: Device, rows: int, size: int, count: int, dtype: np.dtype[Any]) -> None:
    table, index = values(rows, size, dtype=dtype), numbers(count, rows)
    arrays = {"table": table, "index": index, "out": np.zeros((count, size), dtype)}
    for tall, wide in ((16, 16), (5, 37)):
        grid = (-(-size // wide), -(-count // tall), 1)
        found = kernel_agrees(base, embedding, arrays, grid, rows=tall, columns=wide)
        assert (found["out"].view(dtype) == table[index]).all()


@pytest.mark.parametrize("dtype", [BF16, FP32, INT8], ids=str)
@pytest.mark.parametrize("count", [1, 16, 35])
def test_columns(base: Device, count: int, dtype: np.dtype[Any]) -> None:
    table, index = values(3, 20, 21, dtype=dtype), numbers(count, 20)
    found = kernel_agrees(base, turned, {"table": table, "index": index, "out": np.zeros((3, 21, count), dtype)})
    assert (found["out"].view(dtype) == table[:, index].transpose(0, 2, 1)).all()


@pytest.mark.some(12)
@pytest.mark.parametrize("dtype", [BF16, FP32, INT8, INT32], ids=str)
@pytest.mark.parametrize("count", [1, 16, 35])
@pytest.mark.parametrize("columns", [True, False])
def test_elements(base: Device, count: int, dtype: np.dtype[Any], columns: bool) -> None:
    table, index = values(99, dtype=dtype), numbers(count, 99)
    out = np.zeros((count, 1) if columns else (1, count), dtype)
    for given in (table, np.repeat(table, 3)[::3]):
        found = kernel_agrees(base, elements, {"table": given, "index": index, "out": out}, columns=columns)
        assert (found["out"].view(dtype).ravel() == table[index]).all()


@pytest.mark.parametrize("dtype", [BF16, INT8], ids=str)
@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_products(base: Device, dtype: np.dtype[Any], kind: str) -> None:
    table, index = values(40, 33, dtype=dtype), numbers(19, 40)
    weights = table[index] if kind == "rows" else table[index].T
    a = values(5, len(weights), dtype=dtype)
    sums: Any = np.int32 if dtype is INT8 else np.float32
    arrays = {"a": a, "table": table, "index": index, "out": np.zeros((5, weights.shape[1]), sums)}
    found = kernel_agrees(base, multiplied, arrays, kind=kind)
    assert (found["out"].view(sums) == a.astype(np.float64) @ weights.astype(np.float64)).all()


@pytest.mark.parametrize("count", [1, 8, 21])
@pytest.mark.parametrize("dtype", [BF16, FP32, INT8], ids=str)
def test_some_rows(base: Device, count: int, dtype: np.dtype[Any]) -> None:
    table, index = values(30, 20, dtype=dtype), numbers(count, 30)
    found = kernel_agrees(base, counted, {"table": table, "index": index, "out": np.zeros_like(table)})
    wanted = np.zeros_like(table)
    wanted[index] = table[index]
    assert (found["out"].view(dtype) == wanted).all()


@pytest.mark.parametrize("dtype", [BF16, FP32, INT8], ids=str)
def test_scattered(base: Device, dtype: np.dtype[Any]) -> None:
    """Of equal numbers in a tile the last one stays."""
    x, index = values(8, 37, dtype=dtype), numbers(8, 4)
    found = kernel_agrees(base, scattered, {"x": x, "index": index, "out": np.zeros((4, 37), dtype)}, (3, 1, 1))
    wanted = np.zeros((4, 37), dtype)
    for row, number in zip(x, index, strict=True):
        wanted[number] = row
    assert (found["out"].view(dtype) == wanted).all()


@pytest.mark.parametrize("count", [1, 9, 20])
def test_what_is_stored_in_between(base: Device, count: int) -> None:
    x, index = values(20, 33, dtype=INT32), RNG.permutation(20)[:count].astype(np.int32)
    out = np.zeros((40, 33), INT32)
    found = kernel_agrees(base, before_and_behind, {"x": x, "index": index, "out": out})
    behind = x.copy()
    behind[index] += 1
    out[:count] = x[index] * 1000 + behind[index]
    out[20:] = x * 1000 + behind
    assert (found["out"].view(INT32) == out).all()


def test_in_turn(base: Device) -> None:
    index = numbers(20, 5)
    found = kernel_agrees(base, histogram, {"index": index, "out": np.zeros(5, np.int32)})
    assert (found["out"] == np.bincount(index, minlength=5)).all()


@tile.kernel
def too_few(table: Any, index: Any, out: Any) -> None:
    tile.scatter(out, (0, 0), tile.load(index, 0, (1, 5)), tile.load(table, (0, 0), (6, 16)))


@tile.kernel
def of_floats(table: Any, index: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.gather(table, (0, 0), tile.load(table, (0, 0), (1, 16)), 16))


@tile.kernel
def apart(table: Any, index: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.gather(table, (0, 0), tile.load(index, 0, (1, 5)), 5, axes=(1, 0)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (too_few, r"scatter: row numbers are int32\[1, 5\]; they are int32, one for each of 6 rows"),
        (of_floats, r"gather: row numbers are bf16\[1, 16\]; they are int32, one for each of 16 rows"),
        (apart, "gather of rows of table whose elements are 16 apart; they must be contiguous"),
    ],
)
def test_mistakes(base: Device, kernel: tile.Kernel, message: str) -> None:
    table, index, out = base.zeros((16, 16), BF16), base.zeros((16,), np.int32), base.zeros((16, 16), BF16)
    with pytest.raises(tile.TileError, match=message):
        kernel[1](table, index, out)


def test_the_interpreter_refuses_what_is_outside(base: Device) -> None:
    arrays = {"table": values(4, 16), "index": np.array([3, 4], np.int32), "out": np.zeros((2, 16), BF16)}
    with pytest.raises(tile.TileError, match=r"gather of rows \[3, 4.*\]; the array has 0 to 3"):
        kernel_agrees(base, embedding, arrays, rows=2)


def test_chips_without_lists() -> None:
    config = replace(preset("base"), name="plain", gather=False)
    types = types_of({"table": values(4, 16), "index": numbers(4, 4), "out": values(4, 16)})
    with pytest.raises(tile.TileError, match=r"line \d+: gather takes lists, and the chip plain has none"):
        embedding.compiled(dict(types), {"rows": 4, "columns": 16}, (1, 1, 1), config)


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
def test_on_the_gateware() -> None:
    with Device.open("fast:base?memory=4M") as device:
        for dtype in (BF16, INT8, FP32):
            table, index = values(30, 20, dtype=dtype), numbers(19, 30)
            kernel_agrees(device, counted, {"table": table, "index": index, "out": np.zeros_like(table)})
            x, index = values(8, 37, dtype=dtype), numbers(8, 4)
            kernel_agrees(device, scattered, {"x": x, "index": index, "out": np.zeros((4, 37), dtype)}, (3, 1, 1))
            table, index = values(3, 20, 21, dtype=dtype), numbers(17, 20)
            kernel_agrees(device, turned, {"table": table, "index": index, "out": np.zeros((3, 21, 17), dtype)})
        table = values(64, 48)
        offsets = numbers(80, 64)[None] * np.int32(table.itemsize * 48)
        kernel_agrees(device, by_bytes, {"table": table, "offsets": offsets, "out": np.zeros((80, 48), BF16)})
        kernel_agrees(device, histogram, {"index": numbers(20, 5), "out": np.zeros(5, np.int32)})
