"""In whose rounds indices change, those that loops carry too."""

from typing import Any

import ml_dtypes
import numpy as np
from tile_agreement import types_of

from sley.runtime import tile
from sley.runtime.tile.passes.dependences import index_dependences

BF16 = np.dtype(ml_dtypes.bfloat16)


@tile.kernel
def walked(x: Any, out: Any) -> None:
    """A place that a loop carries from a block's own on, by the step of another loop around it."""
    for step in range(1, 3):
        place = tile.block_id() * 16
        for _ in range(2):
            tile.store(out, (place, 0), tile.load(x, (place, 0), (4, 16)))
            place = place + step * 4
        tile.store(out, (place, 0), tile.load(x, (step, 0), (4, 16)))


def test_what_is_carried_changes_with_what_it_begins_with() -> None:
    arrays = types_of({"x": np.zeros((64, 16), BF16), "out": np.zeros((64, 16), BF16)})
    function = walked.function(arrays, {}, (2, 1, 1))
    outer, inner = (op for op in function.body.walk() if op.body is not None)
    loads = [op for op in function.body.walk() if op.name == "load"]
    stores = [op for op in function.body.walk() if op.name == "store"]
    changes = index_dependences(function)
    assert changes[loads[0].operands[1]] == {0, outer, inner}
    assert changes[stores[1].operands[1]] == {0, outer, inner}
    assert changes[loads[1].operands[1]] == {outer}
    assert changes[loads[1].operands[2]] == frozenset()
