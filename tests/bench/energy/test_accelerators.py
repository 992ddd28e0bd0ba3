"""Published accelerators: two layers and a product, of which the numbers stay where they are."""

import pytest

from sley.bench.energy.accelerators import LIKE_NVDLA, Compared, compare
from sley.driver import BadRequest
from sley.runtime import energy
from sley.runtime.energy.activity import MATRIX
from sley.sim.engines.options import default_engine


def test_size_of_the_chip() -> None:
    assert LIKE_NVDLA.peak_macs == 2048
    assert LIKE_NVDLA.scratchpad_rows * LIKE_NVDLA.row_bytes == 512 << 10


def test_no_such_layer() -> None:
    with pytest.raises(BadRequest, match="l9_3x3"):
        compare(lambda _: None, ["l9_3x3"])


@pytest.mark.slow
@pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")
def test_estimates_stay_beside_what_was_published() -> None:
    nvdla, opengemm = compare(lambda _: None, ["l4_3x3"])
    check(nvdla, 0.2, 0.8)
    check(opengemm, 0.4, 0.6)
    assert opengemm.published == 0.43 == pytest.approx(opengemm.spread[0], rel=0.1)
    assert opengemm.of_unit("7nm", MATRIX) == pytest.approx(0.1)  # no place of the array is empty
    assert opengemm.each("7nm") == pytest.approx(0.516, rel=0.02)  # as docs/theory/energy.md has it


def check(found: Compared, least: float, most: float) -> None:
    low, high = found.spread
    assert least < found.each("7nm") < most
    assert low < found.each("7nm") < found.between() < found.each("45nm") == high
    assert found.between("accumulators") < found.between()
    assert energy.published("ZigZag").operation("int8 MAC").low == 0.04
