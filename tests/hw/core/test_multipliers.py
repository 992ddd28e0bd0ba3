# amaranth: UnusedElaboratable=no
"""Which element of an array has which multiplier."""

from typing import Any

import pytest

from sley.abi.config import preset
from sley.hw.core.element import ProcessingElement
from sley.hw.core.multipliers import Multiplier, multipliers

NANO, EDGE = preset("nano"), preset("edge")


class Fpga:
    def __init__(self, dsp_blocks: Any) -> None:
        self.dsp_blocks = dsp_blocks


@pytest.mark.parametrize(
    ("array", "cores", "there", "blocks", "kind"),
    [
        (8, 1, 28, 22, Multiplier.CROWDED_BLOCK),
        (16, 1, 156, 124, Multiplier.CROWDED_BLOCK),
        (8, 1, 156, 64, Multiplier.BLOCK),
        (8, 1, 107, 64, Multiplier.BLOCK),
        (8, 1, 106, 64, Multiplier.CROWDED_BLOCK),
        (4, 1, 28, 16, Multiplier.BLOCK),
        (8, 2, 156, 62, Multiplier.CROWDED_BLOCK),
        (4, 1, 8, 6, Multiplier.CROWDED_BLOCK),
        (4, 4, 28, 5, Multiplier.CROWDED_BLOCK),
        (4, 1, 1, 0, Multiplier.BLOCK),
        (4, 1, 0, 0, Multiplier.BLOCK),
    ],
)
def test_blocks_are_shared_out_evenly(array: int, cores: int, there: int, blocks: int, kind: Multiplier) -> None:
    found = multipliers(NANO.replace(array=array, cores_x=cores), Fpga(there))
    assert (len(found), found.count(kind)) == (array * array, blocks)
    assert found.count(Multiplier.LOGIC) == array * array - blocks
    per_row = [found[r * array : (r + 1) * array].count(kind) for r in range(array)]
    assert max(per_row) - min(per_row) <= 1


def test_where_blocks_are_not_known_all_elements_have_them() -> None:
    for platform in (None, Fpga(None)):
        assert set(multipliers(NANO, platform)) == {Multiplier.BLOCK}


def test_bf16_has_blocks_everywhere() -> None:
    """Two in an element."""
    assert set(multipliers(EDGE, Fpga(8))) == {Multiplier.CROWDED_BLOCK}
    assert set(multipliers(EDGE, Fpga(213))) == {Multiplier.CROWDED_BLOCK}
    assert set(multipliers(EDGE, Fpga(214))) == {Multiplier.BLOCK}
    with pytest.raises(ValueError, match=r"the multiplier is of logic and the chip has bf16"):
        ProcessingElement(EDGE, multiplier=Multiplier.LOGIC)
