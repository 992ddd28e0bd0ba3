"""Dividers of the PLLs."""

import pytest

from sley.fpga.clock import PLLS, pll_dividers


@pytest.mark.parametrize(
    ("family", "input_mhz", "mhz"),
    [
        *(("ecp5", 25, mhz) for mhz in (10, 25, 40, 45, 50, 100, 120, 200, 250)),
        *(("ice40", 12, mhz) for mhz in (18, 24, 30, 48, 60, 120)),
        *(("gowin", 27, mhz) for mhz in (27, 36, 54, 108)),
        *(("xc7", 100, mhz) for mhz in (25, 50, 80, 100, 200)),
    ],
)
def test_dividers_make_the_frequency_within_the_limits(family: str, input_mhz: int, mhz: int) -> None:
    pll = PLLS[family]
    found = pll_dividers(pll, input_mhz * 1_000_000, mhz * 1_000_000)
    compared = input_mhz * 1e6 * found.feedback / found.reference
    oscillator = compared * found.output if pll.output_fed_back else compared
    assert (compared if pll.output_fed_back else compared / found.output) == mhz * 1e6
    assert pll.oscillator[0] <= oscillator <= pll.oscillator[1]
    assert pll.detector[0] <= input_mhz * 1e6 / found.reference <= pll.detector[1]
    assert found.reference in pll.reference
    assert found.feedback in pll.feedback
    assert found.output in pll.output


def test_a_frequency_that_cannot_be_made_names_its_neighbours() -> None:
    with pytest.raises(
        ValueError, match=r"the clock is 47\.3 MHz; from 25 MHz the PLL makes .* or .* MHz, the closest"
    ):
        pll_dividers(PLLS["ecp5"], 25_000_000, 47_300_000)
