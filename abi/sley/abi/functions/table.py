"""Functions of one fp32 operand: their codes, published errors, and the segments of their polynomials.

A result is p * 2^x. p = c0 + w * q, or its negative modulo 2, with q = c1 + s * (c2 + s * c3). t is the place in a
segment; s is t, in fine segments 4 * t; w is t, or in "relative" segments, where c0 is 0, the argument itself. The
coefficients are in ``coefficients.json``, which ``sley.abi.functions.fit`` makes with decimal arithmetic.
``docs/theory/numerics.md`` says how an operand becomes segment, t and w.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

COEFFICIENTS = Path(__file__).with_name("coefficients.json")


class Function(IntEnum):
    """Codes of the functions."""

    EXP2 = 0
    LOG2 = 1
    RECIPROCAL = 2
    RSQRT = 3
    SQRT = 4
    TANH = 5
    SIGMOID = 6
    NORMAL_CDF = 7
    FLOOR = 8
    ROUND = 9


CODE_BITS = 4

PLACE_BITS = 25
"""Bits of the place in a unit of the argument; the highest ones are the segment."""
COARSE_BITS, FINE_BITS = 5, 7
"""Bits of a place that name the segment: 32 or 128 in a unit."""
OFFSET_BITS = PLACE_BITS - COARSE_BITS
"""Bits of t. In a fine segment the upper two are 0."""
INNER_BITS = 17
"""Upper bits of s, which the inner products use."""
W_BITS = PLACE_BITS + 1
"""Bits of w, which is below 2."""


@dataclass(frozen=True)
class Format:
    """A number in fixed point: all its bits, those of the fraction, and whether it is two's complement."""

    bits: int
    fraction: int
    signed: bool = False

    def holds(self, value: int) -> bool:
        """Whether this is one of its integers."""
        low = -(1 << self.bits - 1) if self.signed else 0
        return low <= value < low + (1 << self.bits)


C0 = P = Format(29, 28)
C1, Q = Format(29, 26), Format(31, 28)
C2, R = Format(25, 20, signed=True), Format(27, 22, signed=True)
C3 = Format(18, 13, signed=True)
EXPONENT = Format(7, 0, signed=True)
FORMATS = (C0, C1, C2, C3, EXPONENT)
"""Of the numbers of a segment, in the order in which they are stored."""

Q_LOW, W_LOW = 13, 8
"""Low bits of q and w, whose product with each other is left out of w * q."""


@dataclass(frozen=True)
class Region:
    """Segments that follow each other, ``units`` units of the argument.

    ``subtract``: p is the negative, modulo 2, of the sum. ``mirror``: t counts from the far end of its segment.
    ``relative``: in so many of the first segments w is the argument, and p is not negated.
    """

    first: int
    units: int = 1
    fine: bool = False
    subtract: bool = False
    mirror: bool = False
    relative: int = 0

    @property
    def segments(self) -> int:
        return self.units << (FINE_BITS if self.fine else COARSE_BITS)


@dataclass(frozen=True)
class FunctionFacts:
    """What is published of a function, and its regions.

    ``error`` is in units in the last place of the result, from ``error_from`` on; results for operands below
    ``error_from`` have an absolute error of ``tail_error`` at most.
    """

    doc: str
    error: float
    monotone: int
    exact: str
    regions: tuple[Region, ...] = ()
    error_from: float | None = None
    tail_error: float = 0.0

    @property
    def segments(self) -> int:
        return sum(region.segments for region in self.regions)


FAR = 7
"""Units of log2 for operands outside [0.5, 2): one for each place of the leading one of the result."""

FUNCTIONS: dict[Function, FunctionFacts] = {
    Function.EXP2: FunctionFacts("2 to the power x", 1.0, 1, "2^n for every integer n", (Region(0),)),
    Function.LOG2: FunctionFacts(
        "logarithm to base 2",
        1.0,
        1,
        "n for 2^n",
        (Region(0, fine=True, relative=32), Region(128, fine=True, relative=32), Region(256, FAR)),
    ),
    Function.RECIPROCAL: FunctionFacts("1 / x", 1.0, -1, "2^-n for 2^n", (Region(0, subtract=True),)),
    Function.RSQRT: FunctionFacts("1 / sqrt(x)", 1.0, -1, "2^-n for 4^n", (Region(0, 2, subtract=True),)),
    Function.SQRT: FunctionFacts("square root", 1.0, 1, "2^n for 4^n", (Region(0, 2),)),
    Function.TANH: FunctionFacts(
        "hyperbolic tangent",
        1.0,
        1,
        "x for |x| < 2^-13; odd",
        (Region(0, fine=True, subtract=True, mirror=True, relative=32), Region(128, 9, subtract=True, mirror=True)),
    ),
    Function.SIGMOID: FunctionFacts(
        "1 / (1 + exp(-x))",
        2.75,
        1,
        "0.5 for 0",
        (Region(0, 5, subtract=True, mirror=True), Region(160, 8, mirror=True)),
        error_from=-32.0,
        tail_error=2.0**-46,
    ),
    Function.NORMAL_CDF: FunctionFacts(
        "distribution function of the standard normal distribution",
        2.0,
        1,
        "0.5 for 0",
        (Region(0, 6, subtract=True, mirror=True), Region(192, 8, mirror=True)),
        error_from=-4.0,
        tail_error=2.0**-37,
    ),
    Function.FLOOR: FunctionFacts("largest integer that is not above x", 0.0, 1, "all", (Region(0, relative=32),)),
    Function.ROUND: FunctionFacts("nearest integer, half to even", 0.0, 1, "all", (Region(0, relative=32),)),
}


def segment_value(c0: Any, c1: Any, c2: Any, c3: Any, inner: Any, w: Any, addend: Any = 0, invert: Any = 0) -> Any:
    """p of integers, or of arrays of them. Every product is rounded down, and the low parts of w and q are not
    multiplied with each other. ``inner``: s; ``invert``: -1 subtracts, else 0."""
    down = INNER_BITS + COARSE_BITS
    r = (c2 << R.fraction - C2.fraction) + (c3 * inner >> C3.fraction + down - R.fraction)
    q = (c1 << Q.fraction - C1.fraction) + (r * inner >> R.fraction + down - Q.fraction)
    product = w * q - (w & (1 << W_LOW) - 1) * (q & (1 << Q_LOW) - 1) >> Q.fraction + PLACE_BITS - P.fraction
    return ((c0 ^ addend ^ invert) + (product ^ invert)) & (1 << P.bits) - 1


Segment = tuple[int, int, int, int, int]
"""c0, c1, c2, c3 and x, as integers of ``FORMATS``."""


@cache
def coefficients() -> dict[Function, tuple[Segment, ...]]:
    """The segments of each function that has some."""
    stored = json.loads(COEFFICIENTS.read_text())
    return {Function[name]: tuple((a, b, c, d, e) for a, b, c, d, e in rows) for name, rows in stored.items()}


def bases(functions: Iterable[Function]) -> dict[Function, int]:
    """Where the segments of each function begin if those of all ``functions`` are in one memory."""
    found, at = {}, 0
    for function in sorted(set(functions)):
        found[function] = at
        at += FUNCTIONS[function].segments
    return found
