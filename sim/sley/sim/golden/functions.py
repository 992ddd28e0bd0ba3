"""Functions of one fp32 operand as the hardware computes them, on arrays of bit patterns, with integers alone.

An operand becomes a place: a segment of the table and 25 bits of what is behind the point, from which come t and w.
The polynomial of the segment gives p in [0.5, 2), which is rounded once. See ``sley.abi.functions.table``.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sley.abi.functions.table import (
    COARSE_BITS,
    FINE_BITS,
    FUNCTIONS,
    INNER_BITS,
    OFFSET_BITS,
    PLACE_BITS,
    Function,
    P,
    coefficients,
    segment_value,
)
from sley.sim.golden.float32 import INFINITY, NAN, SIGN, Bits, flush, is_nan

Int = NDArray[np.int64]
Flags = NDArray[np.bool_]
ONE = np.uint32(0x3F800000)
HALF = np.uint32(0x3F000000)
BIAS, FRACTION_BITS = 127, 23
ALIGN = {Function.EXP2: 0, Function.TANH: 0, Function.SIGMOID: 2, Function.NORMAL_CDF: 0}
"""Functions whose operand becomes a fixed-point number, of units of so many powers of two."""
PLACE_MASK = (1 << PLACE_BITS) - 1


@dataclass
class Place:
    """Of each operand: segment, place, w if it is not t, exponent of the result, and how the sum is formed."""

    segment: Int
    fine: Flags | bool
    place: Int
    argument: Int
    relative: Flags
    exponent: Int
    subtract: Flags | bool
    addend: Int | int = 0
    mirror: bool = False


def apply(function: Function, x: ArrayLike) -> Bits:
    """The function of each bit pattern."""
    x = flush(np.asarray(x, np.uint32))
    if function in (Function.FLOOR, Function.ROUND):
        return np.where(is_nan(x), NAN, _integer(x, function == Function.FLOOR))
    special, value = _special(function, x)
    usual = x[~special]
    result = np.array(value, np.uint32)
    result[~special] = _usual(function, usual)
    return result


def _fields(x: Bits) -> tuple[Flags, Int, Int]:
    wide = x.astype(np.int64)
    return wide >> 31 != 0, wide >> FRACTION_BITS & 255, wide & (1 << FRACTION_BITS) - 1


def _special(function: Function, x: Bits) -> tuple[Flags, Bits]:
    """Operands whose result no polynomial gives, and the results."""
    negative, exponent, fraction = _fields(x)
    zero, infinite, sign = exponent == 0, exponent == 255, x & SIGN
    none = np.uint32(0)
    found, value = zero | infinite, np.full_like(x, NAN)
    if function in ALIGN:
        unit = fixed(function, exponent, fraction) >> PLACE_BITS
        large = exponent - BIAS >= 7 + ALIGN[function]
        if function == Function.EXP2:
            found, value = large, np.where(negative, none, INFINITY)
        elif function == Function.TANH:
            large |= unit >= 10
            found, value = large | zero, np.where(zero, x, ONE | sign)
        else:
            below, above = {Function.SIGMOID: (8, 5), Function.NORMAL_CDF: (8, 6)}[function]
            large |= unit >= np.where(negative, below, above)
            found, value = large | zero, np.where(zero, HALF, np.where(negative, none, ONE))
    elif function == Function.RECIPROCAL:
        value = np.where(zero, INFINITY, none) | sign
    else:
        found |= negative
        if function == Function.RSQRT:
            value = np.where(zero, INFINITY | sign, none)
        elif function == Function.SQRT:
            value = np.where(zero, x, INFINITY)
        else:
            one = x == ONE
            found, value = found | one, np.where(zero, INFINITY | SIGN, np.where(one, none, INFINITY))
        value = np.where(negative & ~zero, NAN, value)
    nan = is_nan(x)
    return found | nan, np.where(nan, NAN, value)


def fixed(function: Function, exponent: Int, fraction: Int) -> Int:
    """The magnitude of an operand in units, rounded down."""
    distance = np.clip(BIAS + 6 + ALIGN[function] - exponent, 0, 63)
    return (fraction | 1 << FRACTION_BITS) << 8 >> distance


def _usual(function: Function, x: Bits) -> Bits:
    negative, exponent, fraction = _fields(x)
    place = _place(function, negative, exponent, fraction)
    c0, c1, c2, c3, x_add = (_columns(function)[k][place.segment] for k in range(5))
    p = polynomial(place, c0, c1, c2, c3)
    sign = negative if function in (Function.RECIPROCAL, Function.TANH) else np.zeros_like(negative)
    if function == Function.LOG2:
        sign = exponent < BIAS
    return _rounded(p, place.exponent + x_add, sign)


@cache
def _columns(function: Function) -> list[Int]:
    return list(np.array(coefficients()[function], np.int64).T)


def _place(function: Function, negative: Flags, exponent: Int, fraction: Int) -> Place:
    if function in ALIGN:
        return _fixed_place(function, negative, exponent, fraction)
    if function == Function.LOG2:
        return _logarithm_place(exponent, fraction)
    place, never = fraction << 2, np.zeros_like(negative)
    segment, result = place >> OFFSET_BITS, 2 * BIAS - exponent
    odd = 1 - (exponent & 1)
    if function == Function.SQRT:
        segment, result = segment | odd << COARSE_BITS, exponent + BIAS >> 1
    elif function == Function.RSQRT:
        segment, result = segment | odd << COARSE_BITS, BIAS - (exponent - BIAS >> 1)
    return Place(segment, False, place, place, never, result, function != Function.SQRT)


def _fixed_place(function: Function, negative: Flags, exponent: Int, fraction: Int) -> Place:
    number = fixed(function, exponent, fraction)
    if function == Function.EXP2:
        number = np.where(negative, ~number, number)
        place = number & PLACE_MASK
        never = np.zeros_like(negative)
        return Place(place >> OFFSET_BITS, False, place, place, never, BIAS + (number >> PLACE_BITS), False)
    unit, place = number >> PLACE_BITS, number & PLACE_MASK
    segment = number >> OFFSET_BITS
    if function == Function.TANH:
        fine = unit == 0
        relative = number >> PLACE_BITS - 2 == 0
        segment = np.where(fine, place >> PLACE_BITS - FINE_BITS, segment + 96)
        argument = (fraction | 1 << FRACTION_BITS) << 2
        result = np.where(relative, exponent, BIAS)
        return Place(segment, fine, place, argument, relative, result, ~relative, mirror=True)
    segment = segment + np.where(negative, FUNCTIONS[function].regions[1].first, 0)
    never = np.zeros_like(negative)
    return Place(segment, False, place, place, never, np.full_like(place, BIAS), ~negative, mirror=True)


def _logarithm_place(exponent: Int, fraction: Int) -> Place:
    """Operands in [0.5, 2) but for both powers of two are "near": their place is the distance from 1, in [0.5, 1) twice
    of it. For the others the integer part of the result is an addend of c0."""
    integer = exponent - BIAS
    negative = integer < 0
    near = ((integer == 0) | (integer == -1)) & (fraction != 0)
    distance = np.where(negative, (1 << FRACTION_BITS) - fraction, fraction)
    place = np.where(near, distance, fraction) << 2
    relative = near & (place >> PLACE_BITS - 2 == 0)
    zeros = FRACTION_BITS - _bit_length(np.where(near, distance, 1))
    argument = distance << 3 << zeros

    magnitude = np.where(negative, ~integer, integer)
    scale = np.maximum(_bit_length(magnitude) - 1, 0)
    addend = (integer << 6 - scale & 127) << P.bits - 7
    segment_near = (place >> PLACE_BITS - FINE_BITS) + np.where(negative, 128, 0)
    segment_far = 256 + (scale << COARSE_BITS) + (place >> OFFSET_BITS)
    return Place(
        np.where(near, segment_near, segment_far),
        near,
        place,
        argument,
        relative,
        np.where(relative, BIAS - 1 - zeros, BIAS),
        negative & ~near,
        np.where(near, 0, addend),
    )


def _bit_length(x: Int) -> Int:
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


def polynomial(place: Place, c0: Int, c1: Int, c2: Int, c3: Int) -> Int:
    """p at a place."""
    offset: Any = np.where(place.fine, (1 << PLACE_BITS - FINE_BITS) - 1, (1 << OFFSET_BITS) - 1)
    t = (place.place ^ (PLACE_MASK if place.mirror else 0)) & offset
    inner = np.where(place.fine, t << FINE_BITS - COARSE_BITS, t) >> OFFSET_BITS - INNER_BITS
    w = np.where(place.relative, place.argument, t)
    p: Int = segment_value(c0, c1, c2, c3, inner, w, place.addend, np.where(place.subtract, -1, 0))
    return p


def _rounded(p: Int, exponent: Int, negative: Flags) -> Bits:
    """p * 2^exponent, the exponent biased: a half is rounded up, for p is not exact anyway."""
    large = p >> P.fraction != 0
    shifted = np.where(large, p >> 1, p)
    extra = P.fraction - FRACTION_BITS - 1
    magnitude = (exponent - ~large.astype(np.int64) - 2 << FRACTION_BITS) + (
        (shifted >> extra) - (1 << FRACTION_BITS) + (shifted >> extra - 1 & 1)
    )
    magnitude = np.where(magnitude < 1 << FRACTION_BITS, 0, np.minimum(magnitude, int(INFINITY)))
    return magnitude.astype(np.uint32) | np.where(negative, SIGN, np.uint32(0))


def _integer(x: Bits, down: bool) -> Bits:
    negative, exponent, _ = _fields(x)
    behind = np.clip(FRACTION_BITS + BIAS - exponent, 0, FRACTION_BITS)  # bits behind the point
    below = (np.int64(1) << behind) - 1
    pattern = x.astype(np.int64)
    rest = pattern & below
    if down:
        up = negative & (rest != 0)
    else:
        half = below + 1 >> 1
        odd = pattern & (below + 1) != 0
        up = (rest > half) | ((rest == half) & odd & (behind > 0))
    whole = (pattern - rest + np.where(up, below + 1, 0)).astype(np.uint32)
    small = exponent < BIAS
    above_half = (exponent == BIAS - 1) & (pattern & (1 << FRACTION_BITS) - 1 != 0)
    one = negative & (exponent > 0) if down else above_half
    return np.where(small, (x & SIGN) | np.where(one, ONE, np.uint32(0)), whole)
