"""Results of reductions that are converted as they are written: which are, and that no bit changes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.lowering import lower

BF16 = ml_dtypes.bfloat16


@tile.kernel
def largest(x: Any, out: Any, axis: int = 1) -> None:
    tile.store(out, (0, 0), tile.load(x, (0, 0), x.shape).max(axis).to(out.dtype))


@tile.kernel
def squares(x: Any, out: Any) -> None:
    values = tile.load(x, (0, 0), x.shape).to(np.float32)
    tile.store(out, (0, 0), (values * values).sum(1).to(out.dtype))


@tile.kernel
def doubled(x: Any, out: Any) -> None:
    """More than a conversion."""
    tile.store(out, (0, 0), (tile.load(x, (0, 0), x.shape).sum(1) * 2.0).to(out.dtype))


@tile.kernel
def both(x: Any, out: Any) -> None:
    """As fp32 and as bf16."""
    values = tile.load(x, (0, 0), x.shape)
    total = values.sum(1)
    tile.store(out, (0, 0), total.to(out.dtype))
    tile.store(out, (0, 1), (values * total).max(1).to(out.dtype))


@pytest.mark.parametrize(("columns", "rows"), [(16, 3), (48, 5), (100, 7), (512, 2)])
@pytest.mark.parametrize(
    ("kernel", "wide", "narrow"), [(largest, 1, True), (squares, 1, True), (doubled, 1, False), (both, 2, False)]
)
def test_narrow(base: Device, kernel: tile.Kernel, wide: int, narrow: bool, rows: int, columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((rows, columns)).astype(BF16)
    arrays = {"x": x, "out": np.zeros((rows, wide), BF16)}
    function = kernel.function(types_of(arrays), {"axis": 1} if kernel is largest else {}, (1, 1, 1))
    lower(function, 16)
    first = next(op for op in function.body.walk() if op.name in ("reduce", "fold"))
    assert bool(first.attributes.get("narrow")) == narrow
    kernel_agrees(base, kernel, arrays)


def test_along_columns_nothing_is(base: Device) -> None:
    x = np.random.default_rng(0).standard_normal((20, 40)).astype(BF16)
    arrays = {"x": x, "out": np.zeros((1, 40), BF16)}
    function = largest.function(types_of(arrays), {"axis": 0}, (1, 1, 1))
    lower(function, 16)
    assert not any(op.attributes.get("narrow") for op in function.body.walk())
    kernel_agrees(base, largest, arrays, axis=0)
