"""The table of functions: its file is what the arithmetic gives, and its numbers fit the fields of the hardware."""

import pytest

from sley.abi.functions import fit
from sley.abi.functions.table import (
    C1,
    C2,
    C3,
    CODE_BITS,
    COEFFICIENTS,
    FORMATS,
    FUNCTIONS,
    INNER_BITS,
    Function,
    Q,
    R,
    bases,
    coefficients,
)


def test_the_file_is_what_the_arithmetic_gives() -> None:
    assert COEFFICIENTS.read_text() == fit.text(), "make it anew: python -m sley.abi.functions.fit"


def test_every_function_is_described() -> None:
    assert set(FUNCTIONS) == set(coefficients()) == set(Function)
    assert all(function < 1 << CODE_BITS for function in Function)


@pytest.mark.parametrize("function", Function)
def test_segments_are_those_of_the_regions(function: Function) -> None:
    first = 0
    for region in FUNCTIONS[function].regions:
        assert region.first == first
        first += region.segments
    assert len(coefficients()[function]) == first


@pytest.mark.parametrize("function", Function)
def test_numbers_fit(function: Function) -> None:
    """Coefficients, and r and q at both ends of each segment; between them both are monotone or far from the limits."""
    for row in coefficients()[function]:
        assert all(form.holds(value) for form, value in zip(FORMATS, row, strict=True)), row
        _, c1, c2, c3, _ = row
        for inner in (0, 1 << INNER_BITS - 1, (1 << INNER_BITS) - 1):
            r = (c2 << R.fraction - C2.fraction) + (c3 * inner >> C3.fraction + 22 - R.fraction)
            q = (c1 << Q.fraction - C1.fraction) + (r * inner >> R.fraction + 22 - Q.fraction)
            assert (R.holds(r), Q.holds(q)) == (True, True), row


def test_functions_of_a_chip_follow_each_other() -> None:
    assert bases({Function.RSQRT, Function.EXP2, Function.RECIPROCAL}) == {
        Function.EXP2: 0,
        Function.RECIPROCAL: 32,
        Function.RSQRT: 64,
    }
