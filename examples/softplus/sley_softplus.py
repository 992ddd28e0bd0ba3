"""softplus, log(1 + exp(x)), as a function of one's own: its definition, its gateware, and its place in Sley.

Between -8 and 8 it is a line between neighbouring points of a table, below -8 it is 0, from 8 on it is x. The absolute
error is at most 2^-8. softplus(NaN) is NaN. ``OwnFunction`` names definition and gateware; the entry point in
``pyproject.toml`` names the ``OwnFunction``.
"""

import math
from itertools import pairwise

import numpy as np
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from sley.abi.functions.own import OwnFunction
from sley.hw.fp.float32 import NAN, Float32
from sley.hw.fp.sum import Sum
from sley.hw.fp.to_int import ToInt32
from sley.sim.golden.float32 import flush, is_nan, to_float, to_int32

X_FRACTION = 12
"""Bits of x behind the point."""
Y_FRACTION = 16
"""Bits of the result behind the point."""
LIMIT = 8
SEGMENT_BITS = 10
"""Bits of the place in a segment, a quarter wide."""
SEGMENTS = 2 * LIMIT << X_FRACTION - SEGMENT_BITS
POINTS = [round(math.log1p(math.exp(4 * index / 16 - LIMIT)) * 2**Y_FRACTION) for index in range(SEGMENTS + 1)]


def softplus(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The definition, on bit patterns."""
    x = flush(x)
    with np.errstate(all="ignore"):
        scaled = (to_float(x) * np.float32(2**X_FRACTION)).view(np.uint32)
    place = to_int32(scaled).astype(np.int64) + (LIMIT << X_FRACTION)
    inside = np.clip(place, 0, (SEGMENTS << SEGMENT_BITS) - 1)
    points, t = np.array(POINTS, np.int64), inside & (1 << SEGMENT_BITS) - 1
    low, high = points[inside >> SEGMENT_BITS], points[(inside >> SEGMENT_BITS) + 1]
    y = low + ((high - low) * t >> SEGMENT_BITS)
    result = (y.astype(np.float32) * np.float32(2.0**-Y_FRACTION)).view(np.uint32)
    result = np.where(place < 0, np.uint32(0), np.where(place >= SEGMENTS << SEGMENT_BITS, x, result))
    return np.where(is_nan(x), np.uint32(NAN), result)


class Softplus(wiring.Component):
    """The gateware: x becomes an integer, the table gives y, and y becomes a number.

    Members
    -------
    use : In(1)
        0 makes ``o`` 0; constant while operands are in flight.
    i : In(32)
        x, a bit pattern.
    o : Out(32)
        softplus(x) of LATENCY cycles ago.

    Latency
    -------
    LATENCY cycles.

    Throughput
    ----------
    One operand per cycle.

    Cost
    ----
    ``ToInt32``, ``Sum``, a table of 65 points, a multiplier.
    """

    LATENCY = 1 + ToInt32.LATENCY + 2 + Sum.CONVERT_LATENCY + 1

    use: Signal
    i: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"use": In(1), "i": In(32), "o": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        x = [Signal(32, name=f"x_{age}", reset_less=True) for age in range(1, self.LATENCY)]
        m.d.sync += [after.eq(before) for before, after in pairwise([self.i, *x])]

        # 1: x * 2^X_FRACTION; what has no larger exponent becomes infinite, which saturates
        number, scaled = Float32(self.i), Signal(32, reset_less=True)
        exponent = number.exponent + X_FRACTION
        m.d.sync += scaled.eq(Cat(number.fraction, Mux(exponent > 0xFF, 0xFF, exponent)[:8], number.sign))
        with m.If(number.is_zero()):
            m.d.sync += scaled.eq(0)
        with m.If(exponent >= 0xFF):
            m.d.sync += scaled[:23].eq(0)

        # 2 to 4: an integer
        m.submodules.to_int = to_int = ToInt32()
        m.d.comb += [to_int.use.eq(1), to_int.i.eq(scaled)]
        place = Signal(signed(33))
        m.d.comb += place.eq(to_int.o + (LIMIT << X_FRACTION))
        segment = place[SEGMENT_BITS : SEGMENT_BITS + (SEGMENTS - 1).bit_length()]

        # 5: the points; 6: the line between them
        low, step = Signal(20, reset_less=True), Signal(18, reset_less=True)
        t, y = Signal(SEGMENT_BITS, reset_less=True), Signal(20, reset_less=True)
        rise: Value = step * t
        m.d.sync += [
            low.eq(Array(POINTS[:-1])[segment]),
            step.eq(Array(high - low for low, high in pairwise(POINTS))[segment]),
            t.eq(place[:SEGMENT_BITS]),
            y.eq(low + (rise >> SEGMENT_BITS)),
        ]
        below, above = place < 0, place >= SEGMENTS << SEGMENT_BITS
        outside = [Signal(2, name=f"outside_{age}", reset_less=True) for age in range(self.LATENCY - 1 - 4)]
        m.d.sync += [after.eq(before) for before, after in pairwise([Cat(below, above), *outside])]

        # 7 on: a number
        m.submodules.convert = convert = Sum()
        m.d.comb += [convert.convert.eq(1), convert.a.eq(y)]
        converted, x_last = Float32(convert.o), x[-1]
        is_below, is_above = outside[-1]
        m.d.sync += self.o.eq(Cat(converted.fraction, (converted.exponent - Y_FRACTION)[:8], converted.sign))
        with m.If(converted.is_zero() | is_below):
            m.d.sync += self.o.eq(0)
        with m.If(is_above):
            m.d.sync += self.o.eq(x_last)
        with m.If(Float32(x_last).is_nan()):
            m.d.sync += self.o.eq(Const(NAN, 32))
        with m.If(~self.use):
            m.d.sync += self.o.eq(0)
        return m


SOFTPLUS = OwnFunction(
    16,
    "SOFTPLUS",
    "log(1 + exp(x)), absolute error at most 2^-8",
    golden="sley_softplus:softplus",
    gateware="sley_softplus:Softplus",
)
