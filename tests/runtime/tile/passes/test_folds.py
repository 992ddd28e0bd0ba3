"""Reductions that take element-wise operations with them: which do, and that no bit changes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import Arrays, kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.lowering import lower

BF16 = ml_dtypes.bfloat16
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-39, -1e-39, 3e38, -3e38]


@tile.kernel
def softmax(x: Any, out: Any, extent: Any = (16, 64)) -> None:
    values = tile.load(x, (tile.block_id() * extent[0], 0), extent, fill=-float("inf"))
    powers = tile.exp(values - values.max(1))
    tile.store(out, (tile.block_id() * extent[0], 0), (powers / powers.sum(1)).to(out.dtype))


@tile.kernel
def squares(x: Any, out: Any, axis: int = 1) -> None:
    values = tile.load(x, (0, 0), x.shape).to(np.float32)
    tile.store(out, (0, 0), (values * values).sum(axis))


@tile.kernel
def largest_difference(x: Any, y: Any, out: Any, axis: int = 1) -> None:
    """Of two tiles, by the stage of two operands: what is so far is read by the port of B, or of C."""
    a, b = tile.load(x, (0, 0), x.shape), tile.load(y, (0, 0), y.shape)
    tile.store(out, (0, 0), (a - b).max(axis).to(out.dtype))


@tile.kernel
def spread(x: Any, out: Any) -> None:
    """The smallest and the largest, as bf16 and as who stores them has them."""
    values = tile.load(x, (0, 0), x.shape)
    low, high = values.min(1), values.max(1)
    tile.store(out, (0, 0), ((values - low) / (high - low)).to(out.dtype))
    tile.store(out, (0, x.shape[1]), high.to(out.dtype))


def values(kind: type, *shape: int) -> Any:
    random = np.random.default_rng(sum(shape))
    if kind in (np.int8, np.int32):
        return random.integers(-128, 128, shape).astype(kind)
    found = random.standard_normal(shape).astype(kind)
    found[:: max(shape[0] // 3, 1), :: max(shape[1] // 3, 1)] = random.choice(SPECIAL)
    return found


def names(kernel: tile.Kernel, arrays: Arrays, **constants: Any) -> list[str]:
    """Operations of the vector unit behind all passes."""
    function = kernel.function(types_of(arrays), constants, (1, 1, 1))
    lower(function, 16)
    return [op.name for op in function.body.walk() if op.name in ("chain", "fold", "reduce")]


@pytest.mark.parametrize(
    ("kind", "columns", "wanted"),
    [
        (BF16, 64, ["reduce", "fold", "chain", "chain"]),
        (BF16, 16, ["reduce", "fold", "chain", "chain"]),
        (BF16, 61, ["reduce", "chain", "reduce", "chain", "chain"]),
        (np.float32, 64, ["reduce", "chain", "reduce", "chain", "chain"]),
    ],
)
def test_powers_are_computed_on_the_way_to_their_sum(base: Device, kind: type, columns: int, wanted: list[str]) -> None:
    """Of bf16: the largest is a column of the scratchpad, the sums so far are in the accumulators. No powers are
    written: the last chain makes them again, and multiplies them."""
    arrays = {"x": values(kind, 13, columns), "out": np.zeros((13, columns), kind)}
    assert names(softmax, arrays, extent=(16, columns)) == wanted
    kernel_agrees(base, softmax, arrays, extent=(16, columns))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", [BF16, np.float32, np.int8])
@pytest.mark.parametrize("shape", [(9, 64), (40, 32), (1, 16), (33, 48)])
def test_squares(base: Device, kind: type, shape: tuple[int, int], axis: int) -> None:
    out = np.zeros((1, shape[1]) if axis == 0 else (shape[0], 1), np.float32)
    arrays = {"x": values(kind, *shape), "out": out}
    assert names(squares, arrays, axis=axis) == ["fold"]
    kernel_agrees(base, squares, arrays, axis=axis)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("first", "second", "folds"),
    [(BF16, BF16, True), (BF16, np.float32, True), (np.float32, np.float32, False), (np.int32, np.int32, False)],
)
@pytest.mark.parametrize("columns", [48, 1])
def test_two_operands(base: Device, first: type, second: type, folds: bool, columns: int, axis: int) -> None:
    """One of them in the accumulators is read by A, and sums so far by C; two leave no port for these."""
    arrays = {
        "x": values(first, 19, 48),
        "y": values(second, 19, columns),
        "out": np.zeros((1, 48) if axis == 0 else (19, 1), np.int32 if first is np.int32 else np.float32),
    }
    assert ("fold" in names(largest_difference, arrays, axis=axis)) == (folds or axis == 0)
    kernel_agrees(base, largest_difference, arrays, axis=axis)


def test_the_largest_of_bf16_is_bf16(base: Device) -> None:
    for columns in (16, 50, 64):
        arrays = {"x": values(BF16, 21, columns), "out": np.zeros((21, columns + 1), BF16)}
        arrays["x"][3] = 1e-39
        kernel_agrees(base, spread, arrays)
