"""Tiles along any axes of an array: transposed by Load, by the vector unit, and in products."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.abi.types import ElementType
from sley.runtime import Device, tile
from sley.runtime.tile.ir import tile_type
from sley.runtime.tile.lowering import lower
from sley.sim.engines.options import default_engine

BF16, FP32, INT32, INT8 = (np.dtype(t) for t in (ml_dtypes.bfloat16, np.float32, np.int32, np.int8))
RNG = np.random.default_rng(5)


def values(*shape: int, dtype: np.dtype[Any] = BF16) -> np.ndarray[Any, Any]:
    if dtype.kind == "i":
        return RNG.integers(-128, 128, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


@tile.kernel
def turned(x: Any, out: Any, rows: int = 16, columns: int = 16) -> None:
    """Rows and columns exchanged, block by block."""
    row, column = tile.block_id(1), tile.block_id(0)
    values = tile.load(x, (column * columns, row * rows), (rows, columns), axes=(1, 0))
    tile.store(out, (row * rows, column * columns), values)


@tile.kernel
def turned_store(x: Any, out: Any) -> None:
    tile.store(out, (0, 0), tile.load(x, (0, 0), x.shape), axes=(1, 0))


@tile.kernel
def gathered_store(x: Any, numbers: Any, out: Any) -> None:
    rows = tile.gather(x, (0, 0), tile.load(numbers, 0, (1, x.shape[0]), axes=(None, 0)), x.shape[1])
    tile.store(out, (0, 0), rows, axes=(1, 0))


@tile.kernel
def carried(x: Any, out: Any, turn: bool = False) -> None:
    """Each tile is stored a round later."""
    held = tile.load(x, (0, 0), (16, 16))
    for row in range(0, x.shape[0], 16):
        tile.store(out, (row, 0), held.T if turn else held)
        held = tile.load(x, (row, 0), (16, 16))


@tile.kernel
def planes(x: Any, out: Any, axes: tuple[int, int]) -> None:
    """All planes along two axes of three, one behind the other."""
    (third,) = {0, 1, 2} - set(axes)
    for number in range(x.shape[third]):
        place: list[Any] = [0, 0, 0]
        place[third] = number
        shape = (x.shape[axes[0]], x.shape[axes[1]])
        tile.store(out, place, tile.load(x, place, shape, axes=axes), axes=axes)


@tile.kernel
def column(bias: Any, x: Any, out: Any) -> None:
    """A vector that goes with rows."""
    by_row = tile.load(bias, 0, (x.shape[0], 1), axes=(0, None))
    tile.store(out, (0, 0), (tile.load(x, (0, 0), x.shape) + by_row).to(out.dtype))


@tile.kernel
def products(a: Any, b: Any, c: Any, shape: tuple[int, int, int] = (32, 32, 32), kind: str = "nn") -> None:
    """Operands of which either is given transposed."""
    rows, columns, depth = shape
    row, column = tile.block_id(1) * rows, tile.block_id(0) * columns
    total = tile.zeros((rows, columns), tile.sums_of(a.dtype))
    for k in range(0, a.shape[1 if kind[0] == "n" else 0], depth):
        x = tile.load(a, (row, k), (rows, depth)) if kind[0] == "n" else tile.load(a, (k, row), (depth, rows)).T
        y = (
            tile.load(b, (k, column), (depth, columns))
            if kind[1] == "n"
            else tile.load(b, (column, k), (columns, depth)).T
        )
        total = tile.dot(x, y, total)
    tile.store(c, (row, column), total)


@tile.kernel
def turned_twice(x: Any, out: Any) -> None:
    """Transposes of what is computed, of what is reduced, and of a product."""
    values = tile.load(x, (0, 0), x.shape)
    scaled = (values * 2.0).T + values.T
    highest = values.max(1).T
    product = tile.dot(values, values.T).T
    tile.store(out, (0, 0), (scaled * highest).T + product.sum(1))


SHAPES = [(1, 1), (1, 40), (40, 1), (16, 16), (17, 33), (3, 70), (20, 150)]


@pytest.mark.some(10)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [BF16, FP32, INT32, INT8], ids=str)
def test_loads(base: Device, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    x = values(*shape, dtype=dtype)
    arrays = {"x": x, "out": np.zeros(shape[::-1], dtype)}
    for rows, columns in ((16, 16), (5, 21), (shape[1], shape[0])):
        grid = (-(-shape[0] // columns), -(-shape[1] // rows), 1)
        found = kernel_agrees(base, turned, arrays, grid, rows=rows, columns=columns)
        assert (found["out"].view(dtype) == x.T).all()


@pytest.mark.some(10)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [BF16, FP32, INT32, INT8], ids=str)
def test_stores_and_views(base: Device, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    x = values(*shape, dtype=dtype)
    found = kernel_agrees(base, turned_store, {"x": x, "out": np.zeros(shape[::-1], dtype)})
    assert (found["out"].view(dtype) == x.T).all()
    found = kernel_agrees(base, turned_store, {"x": x.T, "out": np.zeros(shape[::-1], dtype).T})
    assert (found["out"].view(dtype) == x).all()


def test_all_of_bf16_stays(base: Device) -> None:
    """What is moved and not computed keeps its bits: subnormals, and NaNs of any payload."""
    x = np.arange(1 << 16, dtype=np.uint16).reshape(512, 128).view(BF16)
    for rows in range(0, 512, 128):
        part = x[rows : rows + 128].copy()
        found = kernel_agrees(base, turned_store, {"x": part, "out": np.zeros_like(part)})
        assert (found["out"] == part.view(np.uint16).T).all()
        numbers = np.random.default_rng(rows).permutation(128).astype(np.int32)
        found = kernel_agrees(base, gathered_store, {"x": part, "numbers": numbers, "out": np.zeros_like(part)})
        assert (found["out"] == part.view(np.uint16)[numbers].T).all()
    tall = x.reshape(-1, 16)[:1024]
    extremes = np.concatenate([tall[:16], x.reshape(-1, 16)[2032:2064], x.reshape(-1, 16)[4080:]])
    found = kernel_agrees(base, carried, {"x": extremes, "out": np.zeros_like(extremes)})
    assert (found["out"].reshape(-1, 16)[16:] == extremes.view(np.uint16)[:-16]).all()


def test_what_would_not_stay_is_refused() -> None:
    arrays = types_of({"x": np.zeros((32, 16), BF16), "out": np.zeros((32, 16), BF16)})
    error = r"line \d+: a transpose of bf16 that was loaded, and that a loop carries or is a part"
    with pytest.raises(tile.TileError, match=error):
        lower(carried.function(arrays, {"turn": True}, (1, 1, 1)), 16)
    words = types_of({"x": np.zeros((32, 16), np.float32), "out": np.zeros((32, 16), np.float32)})
    lower(carried.function(words, {"turn": True}, (1, 1, 1)), 16)


@pytest.mark.some(8)
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)], ids=str)
@pytest.mark.parametrize("dtype", [BF16, FP32, INT8], ids=str)
def test_planes(base: Device, axes: tuple[int, int], dtype: np.dtype[Any]) -> None:
    x = values(3, 19, 20, dtype=dtype)
    if 2 not in axes:
        with pytest.raises(tile.TileError, match=r"load of x along the axes \(\d, \d\), whose elements are .* apart"):
            kernel_agrees(base, planes, {"x": x, "out": np.zeros_like(x)}, axes=axes)
        return
    found = kernel_agrees(base, planes, {"x": x, "out": np.zeros_like(x)}, axes=axes)
    assert (found["out"].view(dtype) == x).all()


@pytest.mark.some(8)
@pytest.mark.parametrize("size", [1, 2, 16, 31, 150])
@pytest.mark.parametrize("dtype", [BF16, FP32, INT8, INT32], ids=str)
def test_columns(base: Device, size: int, dtype: np.dtype[Any]) -> None:
    bias, x = values(size, dtype=dtype), values(size, 20, dtype=dtype)
    kind = np.int32 if dtype.kind == "i" else np.float32
    for given in (bias, np.repeat(bias, 3)[::3]):
        found = kernel_agrees(base, column, {"bias": given, "x": x, "out": np.zeros(x.shape, kind)})
        assert (found["out"].view(kind) == x.astype(kind) + bias.astype(kind)[:, None]).all()


@pytest.mark.some(10)
@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (32, 32, 32), (70, 50, 101), (33, 17, 61)])
@pytest.mark.parametrize("dtype", [BF16, INT8], ids=str)
def test_products(base: Device, dtype: np.dtype[Any], m: int, n: int, k: int, kind: str) -> None:
    a, b = values(m, k, dtype=dtype), values(k, n, dtype=dtype)
    wide: Any = np.int32 if dtype is INT8 else np.float32
    arrays = {
        "a": a if kind[0] == "n" else np.ascontiguousarray(a.T),
        "b": b if kind[1] == "n" else np.ascontiguousarray(b.T),
        "c": np.zeros((m, n), wide),
    }
    plain = kernel_agrees(base, products, {"a": a, "b": b, "c": arrays["c"]}, (-(-n // 32), -(-m // 32), 1))
    for shape in ((32, 32, 32), (8, 48, 61)):
        grid = (-(-n // shape[1]), -(-m // shape[0]), 1)
        found = kernel_agrees(base, products, arrays, grid, shape=shape, kind=kind)
        assert (found["c"] == plain["c"]).all()


@tile.kernel
def shared(x: Any, out: Any) -> None:
    """Both operands of products, and an operand of something else."""
    values = tile.load(x, (0, 0), x.shape)
    tile.store(out, (0, 0), tile.dot(values, values, tile.dot(values.T, values)) + values)


@tile.kernel
def squared(x: Any, out: Any) -> None:
    values = tile.load(x, (0, 0), x.shape)
    tile.store(out, (0, 0), tile.dot(values, values))


@pytest.mark.parametrize("size", [1, 16, 33])
@pytest.mark.parametrize("dtype", [BF16, INT8], ids=str)
def test_operands_are_shared(base: Device, size: int, dtype: np.dtype[Any]) -> None:
    x, sums = values(size, size, dtype=dtype), np.dtype(np.int32 if dtype is INT8 else np.float32)
    found = kernel_agrees(base, shared, {"x": x, "out": np.zeros((size, size), sums)})
    wanted = x.astype(np.float64) @ x + x.T.astype(np.float64) @ x + x
    np.testing.assert_allclose(found["out"].view(sums), wanted, rtol=1e-4, atol=1e-4)
    found = kernel_agrees(base, squared, {"x": x, "out": np.zeros((size, size), sums)})
    np.testing.assert_allclose(found["out"].view(sums), x.astype(np.float64) @ x, rtol=1e-4, atol=1e-4)


@tile.kernel
def attended(q: Any, k: Any, v: Any, out: Any, rows: int = 16, keys: int = 20) -> None:
    """Computed first operands whose columns are no multiple of N, with infinities and NaN behind them."""
    row, size = tile.block_id() * rows, q.shape[1]
    queries, total = tile.load(q, (row, 0), (rows, size)), tile.zeros((rows, size), tile.sums_of(q.dtype))
    for key in range(0, k.shape[0], keys):
        scores = tile.dot(queries, tile.load(k, (key, 0), (keys, size)).T)
        inside = tile.iota(scores.shape, 1) + key < k.shape[0]
        powers = tile.where(inside, tile.reciprocal(scores) + scores.max(1), 0).to(v.dtype)  # infinite behind them
        total = tile.dot(powers, tile.load(v, (key, 0), (keys, size)), total)
    tile.store(out, (row, 0), total)


@pytest.mark.some(4)
@pytest.mark.parametrize(("size", "count"), [(1, 1), (16, 32), (33, 50)])
@pytest.mark.parametrize("keys", [1, 16, 20, 37])
def test_computed_operands(base: Device, size: int, count: int, keys: int) -> None:
    arrays = {name: values(count, size) for name in "qkv"} | {"out": np.zeros((count, size), np.float32)}
    kernel_agrees(base, attended, arrays, (-(-count // 16), 1, 1), keys=keys)


@tile.kernel
def computed_int8(x: Any, y: Any, out: Any) -> None:
    a = (tile.load(x, (0, 0), x.shape) + 1).to(x.dtype)
    tile.store(out, (0, 0), tile.dot(a, tile.load(y, (0, 0), y.shape)))


@pytest.mark.some(4)
@pytest.mark.parametrize("depth", [1, 2, 15, 16, 31, 33, 64])
def test_computed_int8(base: Device, depth: int) -> None:
    x, y = values(19, depth, dtype=INT8), values(depth, 21, dtype=INT8)
    found = kernel_agrees(base, computed_int8, {"x": x, "y": y, "out": np.zeros((19, 21), INT32)})
    assert (found["out"].view(INT32) == np.clip(x.astype(int) + 1, -128, 127) @ y).all()


@pytest.mark.parametrize("size", [1, 16, 20, 33])
def test_what_is_computed(base: Device, size: int) -> None:
    kernel_agrees(base, turned_twice, {"x": values(size, size), "out": np.zeros((size, size), np.float32)})


@pytest.mark.skipif(default_engine() != "fast", reason="needs a C compiler")
def test_on_the_gateware() -> None:
    with Device.open("fast:base?memory=4M") as device:
        for dtype in (BF16, INT8, FP32):
            x = values(40, 35, dtype=dtype)
            kernel_agrees(device, turned, {"x": x, "out": np.zeros((35, 40), dtype)}, (2, 2, 1), rows=21, columns=30)
            arrays = {"bias": x[0], "x": values(35, 20, dtype=dtype), "out": np.zeros((35, 20), BF16)}
            kernel_agrees(device, column, arrays)
        for dtype in (BF16, INT8):
            for kind in ("nt", "tn", "tt"):
                a, b = values(50, 50, dtype=dtype), values(50, 50, dtype=dtype)
                sums = np.zeros((50, 50), np.int32 if dtype is INT8 else np.float32)
                kernel_agrees(device, products, {"a": a, "b": b, "c": sums}, (2, 2, 1), kind=kind)
        arrays = {name: values(50, 33) for name in "qkv"} | {"out": np.zeros((50, 33), np.float32)}
        kernel_agrees(device, attended, arrays, (4, 1, 1), keys=20)


@tile.kernel
def turned_behind(x: Any, out: Any, dtype: Any = BF16) -> None:
    """A transpose of what was converted, and used as it is beside."""
    values = tile.load(x, (0, 0), x.shape)
    made = (values * values.sum(1)).to(dtype)
    tile.store(out, (0, 0), made.T)
    tile.store(out, (x.shape[1], 0), (made + made).to(dtype).T)


@pytest.mark.parametrize("dtype", [BF16, FP32, INT32], ids=str)
@pytest.mark.parametrize("shape", [(16, 16), (5, 33)])
def test_what_is_converted_turns_before(base: Device, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    out = np.zeros((2 * shape[1], shape[0]), dtype)
    kernel_agrees(base, turned_behind, {"x": values(*shape), "out": out}, dtype=dtype)
    function = turned_behind.function(types_of({"x": values(*shape), "out": out}), {"dtype": dtype}, (1, 1, 1))
    lower(function, 16)
    turned = [op for op in function.body.walk() if op.name == "transpose"]
    assert {tile_type(op.operands[0]).dtype for op in turned} <= {ElementType.FP32, ElementType.INT32}
