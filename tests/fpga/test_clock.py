"""Dividers of the PLL."""

import pytest

from sley.fpga.clock import VCO_HZ, pll_dividers


@pytest.mark.parametrize("mhz", [10, 25, 40, 45, 50, 100, 120, 200, 250])
def test_dividers_make_the_frequency_within_the_limits(mhz: int) -> None:
    found = pll_dividers(25_000_000, mhz * 1_000_000)
    assert 25e6 * found.feedback / found.reference == mhz * 1e6
    assert VCO_HZ[0] <= mhz * 1e6 * found.output <= VCO_HZ[1]
    assert all(1 <= d <= 128 for d in (found.reference, found.feedback, found.output))


def test_a_frequency_that_cannot_be_made_names_its_neighbours() -> None:
    with pytest.raises(
        ValueError, match=r"the clock is 47\.3 MHz; from 25 MHz the PLL makes .* or .* MHz, the closest"
    ):
        pll_dividers(25_000_000, 47_300_000)
