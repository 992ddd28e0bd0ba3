"""Parts of tiles, by number: of columns for anything, of rows for products."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees

from sley.runtime import Device, tile

BF16, INT8, FP32, INT32 = (np.dtype(each) for each in (ml_dtypes.bfloat16, np.int8, np.float32, np.int32))


def values(*shape: int, dtype: Any = BF16) -> Any:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


@tile.kernel
def turned_round(x: Any, out: Any, columns: int = 32) -> None:
    """Blocks of columns in the other order, and twice in a loop, as they are and computed."""
    whole = tile.load(x, (0, 0), x.shape)
    count = x.shape[1] // columns
    for number in range(count):
        tile.store(out, (0, number * columns), tile.part(whole, count - 1 - number, (x.shape[0], columns)))
    total = tile.zeros((x.shape[0], columns), tile.sums_of(x.dtype) if x.dtype.bytes < 4 else x.dtype)
    for number in range(count):
        total = total + tile.part(whole, number, (x.shape[0], columns)) * 1
    tile.store(out, (x.shape[0], 0), total.to(out.dtype))


@tile.kernel
def softmax_of_parts(x: Any, out: Any) -> None:
    """Reductions of parts of what is computed, and a part that a loop carries."""
    powers = tile.exp2(tile.load(x, (0, 0), x.shape))
    faded = tile.part(powers, 2, (x.shape[0], 16))
    for number in range(x.shape[1] // 16):
        piece = tile.part(powers, number, (x.shape[0], 16))
        faded = faded * 0.5 + piece
        tile.store(out, (0, 1 + number), piece.sum(1))
    tile.store(out, (0, 0), faded.max(1))
    tile.store(out, (x.shape[0], 0), tile.part(powers, 1, (x.shape[0], 16)).sum(0))


@tile.kernel
def resident(a: Any, b: Any, out: Any, depth: int = 32, turn: bool = False) -> None:
    """Both operands are loaded once, and multiplied in chunks of K: parts of columns, and of rows."""
    (m, k), n = a.shape, out.shape[1]
    left = tile.load(a, (0, 0), (m, k))
    right = tile.load(b, (0, 0), (n, k)).T if turn else tile.load(b, (0, 0), (k, n))
    total = tile.zeros((m, n), tile.sums_of(a.dtype))
    for number in range(k // depth):
        total = tile.dot(tile.part(left, number, (m, depth)), tile.part(right, number, (depth, n)), total)
    tile.store(out, (0, 0), total)


@tile.kernel
def rows_of_computed(a: Any, b: Any, out: Any) -> None:
    """Rows of a first operand that the vector unit makes, whose last lanes, 1 / 0, are not there."""
    inverse, right = tile.reciprocal(tile.load(a, (0, 0), a.shape)).to(a.dtype), tile.load(b, (0, 0), b.shape)
    rows = a.shape[0] // 4
    for number in range(4):
        tile.store(out, (number * rows, 0), tile.dot(tile.part(inverse, number, (rows, a.shape[1])), right))


@tile.kernel
def parts_turned(x: Any, out: Any) -> None:
    """Transposes of parts, which the vector unit makes."""
    whole = tile.load(x, (0, 0), x.shape)
    for number in range(x.shape[1] // 16):
        tile.store(out, (number * 16, 0), tile.part(whole, number, (x.shape[0], 16)).to(np.float32).T.to(out.dtype))


@pytest.mark.parametrize("rows", [1, 7, 16, 33])
@pytest.mark.parametrize("dtype", [BF16, FP32, INT32, INT8], ids=str)
def test_columns(base: Device, rows: int, dtype: Any) -> None:
    x = values(rows, 128, dtype=dtype)
    arrays = {"x": x, "out": np.zeros((2 * rows, 128), dtype)}
    found = kernel_agrees(base, turned_round, arrays)["out"].view(dtype).reshape(2 * rows, 128)
    blocks = x.reshape(rows, 4, 32)
    assert (found[:rows] == blocks[:, ::-1].reshape(rows, 128)).all()
    assert (found[rows:, :32] == blocks.astype(np.float32).sum(1).astype(dtype)).all()


@pytest.mark.parametrize("rows", [5, 16, 40])
def test_what_is_computed(base: Device, rows: int) -> None:
    x = values(rows, 80)
    found = kernel_agrees(base, softmax_of_parts, {"x": x, "out": np.zeros((rows + 1, 16), np.float32)})
    pieces = (2.0 ** x.astype(np.float64)).reshape(rows, 5, 16)
    out = found["out"].view(np.float32).reshape(rows + 1, 16)
    faded = pieces[:, 2]
    for number in range(5):
        faded = faded / 2 + pieces[:, number]
    assert (out[:rows, 0] == faded.max(1)).all()
    assert (out[:rows, 1:6] == pieces.sum(2)).all()
    assert (out[rows] == pieces[:, 1].sum(0)).all()


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 64, 1), (16, 96, 33), (37, 128, 50)])
@pytest.mark.parametrize("dtype", [BF16, INT8], ids=str)
def test_chunks_of_products(base: Device, dtype: Any, m: int, k: int, n: int, turn: bool) -> None:
    a, b = values(m, k, dtype=dtype), values(k, n, dtype=dtype)
    kind = np.int32 if dtype == INT8 else np.float32
    arrays = {"a": a, "b": np.ascontiguousarray(b.T) if turn else b, "out": np.zeros((m, n), kind)}
    found = kernel_agrees(base, resident, arrays, turn=turn)["out"].view(kind).reshape(m, n)
    assert (found == a.astype(kind) @ b.astype(kind)).all()


@pytest.mark.parametrize("k", [20, 32])
def test_rows_of_what_is_computed(base: Device, k: int) -> None:
    a, b = (2.0 ** values(36, k)).astype(BF16), values(k, 18)
    found = kernel_agrees(base, rows_of_computed, {"a": a, "b": b, "out": np.zeros((36, 18), np.float32)})["out"]
    assert (found.view(np.float32).reshape(36, 18) == (1 / a.astype(np.float32)) @ b.astype(np.float32)).all()


@pytest.mark.parametrize("dtype", [BF16, FP32], ids=str)
def test_transposes(base: Device, dtype: Any) -> None:
    x = values(20, 64, dtype=dtype)
    found = kernel_agrees(base, parts_turned, {"x": x, "out": np.zeros((64, 20), dtype)})["out"].view(dtype)
    assert (found.reshape(64, 20) == x.T).all()


@pytest.mark.parametrize("chip", ["edge", "quad"])
def test_other_chips(chip: str) -> None:
    with Device.open(f"model:{chip}?memory=4M") as device:
        for dtype in device.config.operand_types:
            kind = INT8 if dtype.bytes == 1 else BF16
            sums = np.int32 if kind == INT8 else np.float32
            arrays = {"a": values(19, 64, dtype=kind), "b": values(64, 30, dtype=kind), "out": np.zeros((19, 30), sums)}
            kernel_agrees(device, resident, arrays)


@tile.kernel
def narrow(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.part(tile.load(x, (0, 0), (16, 64)), 1, (16, 8)))


@tile.kernel
def rows_alone(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.part(tile.load(x, (0, 0), (16, 64)), 1, (8, 64)))


@tile.kernel
def outside(x: Any, out: Any) -> None:
    whole = tile.load(x, (0, 0), (16, 64))
    for number in range(3):
        tile.store(out, (0, 0), tile.part(whole, number, (16, 32)))


@tile.kernel
def unequal(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.part(tile.load(x, (0, 0), (16, 64)), 0, (16, 48)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (narrow, "a part of 8 columns; it has a multiple of 16 on the chip base"),
        (rows_alone, "a part of rows is an operand of dot alone"),
        (outside, "part 0 to 2 of a tile that has 0 to 1"),
        (unequal, r"a part of shape \(16, 48\) of bf16\[16, 64\]; parts along axis 1 are equal"),
    ],
)
def test_what_is_refused(base: Device, kernel: tile.Kernel, message: str) -> None:
    x, out = base.zeros((16, 64), BF16), base.zeros((16, 64), BF16)
    with pytest.raises(tile.TileError, match=message):
        kernel[1](x, out)
