# amaranth: UnusedElaboratable=no
"""Which element of an array has which multiplier."""

import pytest
from element_bench import Fpga

from sley.abi.config import preset
from sley.hw.core.matrix.element import ProcessingElement
from sley.hw.core.matrix.multiplier.assignment import Multiplier, multipliers

NANO, EDGE = preset("nano"), preset("edge")


@pytest.mark.parametrize(
    ("array", "cores", "there", "blocks", "kind"),
    [
        (8, 1, 28, 21, Multiplier.CROWDED_BLOCK),
        (16, 1, 156, 117, Multiplier.CROWDED_BLOCK),
        (8, 1, 156, 64, Multiplier.BLOCK),
        (8, 1, 107, 64, Multiplier.BLOCK),
        (8, 1, 106, 64, Multiplier.CROWDED_BLOCK),
        (4, 1, 28, 16, Multiplier.BLOCK),
        (8, 2, 156, 58, Multiplier.CROWDED_BLOCK),
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


@pytest.mark.parametrize(
    ("array", "cores", "there", "pairs", "kind", "others"),
    [
        (16, 1, 156, 117, Multiplier.LOGIC, 22),
        (16, 2, 156, 58, Multiplier.LOGIC, 140),
        (8, 1, 28, 21, Multiplier.LOGIC, 22),
        (8, 1, 72, 10, Multiplier.CROWDED_BLOCK, 44),
        (8, 1, 43, 32, Multiplier.LOGIC, 0),
        (8, 1, 156, 0, Multiplier.BLOCK, 64),
        (4, 1, 1, 0, Multiplier.LOGIC, 16),
    ],
)
def test_elements_share_blocks_where_there_are_too_few(
    array: int, cores: int, there: int, pairs: int, kind: Multiplier, others: int
) -> None:
    """As few of them as that takes, and none beyond two columns of a row."""
    found = multipliers(NANO.replace(array=array, cores_x=cores), Fpga(there, "ecp5"))
    assert (found.count(Multiplier.PAIR), found.count(kind)) == (2 * pairs, others)
    assert len(found) == array * array == 2 * pairs + others
    assert found[::2] == found[1::2]


@pytest.mark.parametrize(
    ("limit", "kinds"),
    [
        (0, {Multiplier.LOGIC: 64}),
        (8, {Multiplier.PAIR: 16, Multiplier.LOGIC: 48}),
        (32, {Multiplier.PAIR: 64}),
        (40, {Multiplier.PAIR: 48, Multiplier.CROWDED_BLOCK: 16}),
        (59, {Multiplier.PAIR: 10, Multiplier.CROWDED_BLOCK: 54}),
        (1000, {Multiplier.PAIR: 8, Multiplier.CROWDED_BLOCK: 56}),
    ],
)
def test_arrays_take_as_many_as_they_may(limit: int, kinds: dict[Multiplier, int]) -> None:
    """No more than there are, too."""
    found = multipliers(NANO.replace(array=8), Fpga(60, "ecp5", limit))
    assert {kind: found.count(kind) for kind in set(found)} == kinds


def test_where_blocks_are_not_known_all_elements_have_them() -> None:
    for platform in (None, Fpga(None)):
        assert set(multipliers(NANO, platform)) == {Multiplier.BLOCK}


def test_bf16_has_blocks_everywhere() -> None:
    """Two in an element."""
    assert set(multipliers(EDGE, Fpga(8))) == {Multiplier.CROWDED_BLOCK}
    assert set(multipliers(EDGE, Fpga(213))) == {Multiplier.CROWDED_BLOCK}
    assert set(multipliers(EDGE, Fpga(214))) == {Multiplier.BLOCK}
    with pytest.raises(ValueError, match=r"the multiplier is LOGIC and the chip has bf16"):
        ProcessingElement(EDGE, multiplier=Multiplier.LOGIC)
