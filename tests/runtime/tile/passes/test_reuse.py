"""Results in the rows of operands that nobody needs any more, where the accumulators are short of rows."""

from typing import Any

import numpy as np
import pytest
from tile_agreement import kernel_agrees, types_of

from sley.abi.config import preset
from sley.runtime import Device, tile
from sley.runtime.tile.compiler import prepare

BASE = preset("base")


@tile.kernel
def waves(x: Any, y: Any, out: Any, rows: int, again: bool = False) -> None:
    """A row of element-wise results, each of the one before and of another tile; ``again``: all of them are needed."""
    for at in range(0, x.shape[0], rows):
        a, b = (tile.load(array, (at, 0), (rows, x.shape[1])).to(np.float32) for array in (x, y))
        one = tile.exp(a) * 0.5
        two = tile.maximum(one.max(1), one) + b
        three = two * two.sum(1)
        tile.store(out, (at, 0), three + one + two if again else three + b)


def arrays(count: int, columns: int) -> dict[str, Any]:
    random = np.random.default_rng(count)
    values = {name: random.standard_normal((count, columns)).astype(np.float32) for name in "xy"}
    return values | {"out": np.zeros((count, columns), np.float32)}


def accumulators(rows: int, again: bool) -> int:
    """Buffers that are as large as a tile."""
    given = arrays(128, 64)
    found = prepare(waves.function(types_of(given), {"rows": rows, "again": again}, (1, 1, 1)), BASE).placement
    return sum(buffer.rows == rows * 4 for buffer in {found.of[value] for value in found.of})


def test_only_where_room_is_short() -> None:
    assert accumulators(8, False) > accumulators(40, False)


def test_what_is_needed_later_stays() -> None:
    assert accumulators(40, True) > accumulators(40, False)


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("rows", [8, 24, 40])
def test_bits_are_the_same(base: Device, rows: int, again: bool) -> None:
    kernel_agrees(base, waves, arrays(73, 50), rows=rows, again=again)
