"""Largest elements of bf16 come from the scratchpad, and others do not."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.runtime import Device, tile
from sley.runtime.tile.ir import tile_type
from sley.runtime.tile.lowering import lower

BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def distances(x: Any, out: Any, computed: Any, axis: int) -> None:
    values = tile.load(x, (0, 0), x.shape).to(computed)
    tile.store(out, (0, 0), (values - values.max(axis)).to(out.dtype))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("computed", "narrow"), [(np.float32, True), (np.int32, False)])
def test_which_are(base: Device, computed: Any, narrow: bool, axis: int) -> None:
    x = np.random.default_rng(2).integers(-90, 90, (20, 70)).astype(BF16)
    arrays = {"x": x, "out": np.zeros((20, 70), computed)}
    function = distances.function(types_of(arrays), {"computed": computed, "axis": axis}, (1, 1, 1))
    lower(function, 16)
    taken = {tile_type(value).dtype.info.name for op in function.body.walk() for value in op.results if _is_line(value)}
    assert ("bf16" in taken) == narrow
    found = kernel_agrees(base, distances, arrays, computed=computed, axis=axis)["out"].view(computed)
    wide = x.astype(computed)
    assert (found == wide - wide.max(axis, keepdims=True)).all()


def _is_line(value: Any) -> bool:
    """Whether a value is a tile of one row or one column."""
    return hasattr(value.type, "dtype") and 1 in value.type.shape
