"""Kernels on other chips: small ones without chains, ones with four cores, and ones of random configuration."""

from typing import Any

import kernels
import ml_dtypes
import numpy as np
import pytest
from test_axes import products, turned
from tile_agreement import kernel_agrees

from sley.runtime import Device, tile
from sley.sim.engines.options import default_engine

BF16, FP32, INT32, INT8 = (np.dtype(t) for t in (ml_dtypes.bfloat16, np.float32, np.int32, np.int8))
RNG = np.random.default_rng(13)
NEEDS_COMPILER = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")


@tile.kernel
def scaled_product(a: Any, b: Any, c: Any, bias: int = 0, scale: float = 1.0, shape: tuple[int, int] = (8, 8)) -> None:
    """What a chip without chains does behind a product."""
    row, column = tile.block_id(1) * shape[0], tile.block_id(0) * shape[1]
    total = tile.zeros(shape, tile.sums_of(a.dtype))
    for k in range(0, a.shape[1], 16):
        total = tile.dot(tile.load(a, (row, k), (shape[0], 16)), tile.load(b, (k, column), (16, shape[1])), total)
    tile.store(c, (row, column), tile.relu((total - bias).to(np.float32) * scale).to(c.dtype))


@tile.kernel
def joined(x: Any, y: Any, out: Any, kind: str, rows: int = 4, columns: int = 12) -> None:
    place = tile.block_id(1) * rows, tile.block_id(0) * columns
    a, b = tile.load(x, place, (rows, columns)), tile.load(y, place, (rows, columns))
    made = {"sum": lambda: a + b, "largest": lambda: tile.maximum(a, b), "both": lambda: (a + b) + 3}[kind]()
    tile.store(out, place, made.to(out.dtype))


def integers(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize(
    ("engine", "chip"),
    [
        *(("model", chip) for chip in ("nano", "edge")),
        pytest.param("fast", "nano", marks=NEEDS_COMPILER),
        pytest.param("fast", "edge", marks=[NEEDS_COMPILER, pytest.mark.slow]),
    ],
)
def test_without_chains(engine: str, chip: str) -> None:
    with Device.open(f"{engine}:{chip}?memory=1M") as device:
        for m, n, k in ((1, 1, 1), (9, 13, 21)):
            a, b = integers(m, k), integers(k, n)
            for dtype, bias, scale in ((INT8, 5, 0.01), (FP32, -7, 1.0)):
                arrays = {"a": a, "b": b, "c": np.zeros((m, n), dtype)}
                grid = (-(-n // 8), -(-m // 8), 1)
                found = kernel_agrees(device, scaled_product, arrays, grid, bias=bias, scale=scale)
                wanted = np.maximum((a.astype(int) @ b - bias).astype(np.float32) * np.float32(scale), 0)
                wanted = np.clip(np.rint(wanted), -128, 127) if dtype is INT8 else wanted
                assert (found["c"].view(dtype) == wanted).all()
        for kind in ("sum", "largest", "both"):
            for source, target in (
                (INT8, INT8),
                (INT8, INT32),
                (INT32, INT8),
                (INT32, FP32),
                (FP32, FP32),
                (FP32, INT32),
            ):
                x, y = integers(5, 13).astype(source), integers(5, 13).astype(source)
                arrays = {"x": x, "y": y, "out": np.zeros(x.shape, target)}
                kernel_agrees(device, joined, arrays, (2, 2, 1), kind=kind)
        arrays = {"x": integers(9, 21), "out": np.zeros((21, 9), INT8)}
        kernel_agrees(device, turned, arrays, (2, 3, 1), rows=8, columns=8)
        for kind in ("nt", "tn", "tt"):
            sums = {"a": integers(9, 9), "b": integers(9, 9), "c": np.zeros((9, 9), INT32)}
            kernel_agrees(device, products, sums, (2, 2, 1), shape=(8, 8, 8), kind=kind)


def test_what_takes_chains() -> None:
    with Device.open("model:edge?memory=1M") as device:
        x, out = device.zeros((4, 4), FP32), device.zeros((4, 4), FP32)
        refused = r"line \d+: reduce takes chains, and the chip edge has no chains: its vector_chains is 0"
        with pytest.raises(tile.TileError, match=refused):
            kernels.softmax[1](x, out, rows=4)
        with pytest.raises(
            tile.TileError,
            match=r"line \d+: transpose takes chains, and the chip edge has no chains: its vector_chains is 0",
        ):
            turned[1](x, out, rows=4, columns=4)
        with pytest.raises(
            tile.TileError, match=r"line \d+: this takes a chain, and the chip edge has no chains.*; it adds two tiles"
        ):
            kernels.add[1](x, device.zeros((4, 4), FP32), out, rows=4, columns=4)


def test_four_cores() -> None:
    with Device.open("model:quad?memory=4M") as device:
        a, b = (RNG.standard_normal(shape).astype(BF16) for shape in ((70, 101), (50, 101)))
        arrays = {"a": a, "b": b, "c": np.zeros((70, 50), np.float32)}
        kernel_agrees(device, products, arrays, (2, 3, 1), kind="nt")
        kernel_agrees(device, kernels.softmax, {"x": a, "out": np.zeros(a.shape, BF16)}, (5, 1, 1))
