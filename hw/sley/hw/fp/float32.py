"""The fp32 format as the floating-point components see it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

BIAS = 127
FRACTION_BITS = 23
SIGNIFICAND_BITS = 24
INFINITY = 0x7F800000
NAN = 0x7FC00000
"""The one NaN that an operation returns: quiet, positive, no payload."""


class Float32:
    """The fields of a bit pattern. An exponent of 0 is read as zero, whatever the fraction."""

    def __init__(self, pattern: Value) -> None:
        self.fraction = pattern[:FRACTION_BITS]
        self.exponent = pattern[FRACTION_BITS:31]
        self.sign = pattern[31]

    def is_zero(self) -> Value:
        return self.exponent == 0

    def is_infinity(self) -> Value:
        return self.exponent.all() & ~self.fraction.any()

    def is_nan(self) -> Value:
        return self.exponent.all() & self.fraction.any()

    def significand(self) -> Value:
        """The fraction with its leading one, or 0."""
        return Mux(self.is_zero(), 0, Cat(self.fraction, 1))


def normalise(value: Value, shifts: tuple[int, ...]) -> tuple[Value, Value]:
    """A part of a normalising shift to the left: one step for each of the ``shifts``, powers of two, largest first.

    The steps 16, 8, 4, 2, 1, which may be spread over pipeline stages, bring the leading one of a value of up to 32
    bits to the top. Returns the shifted value and the distance in units of the smallest step.
    """
    steps: list[Value] = []
    for shift in shifts:
        empty = ~value[-shift:].any()
        value = Mux(empty, Cat(Const(0, shift), value[:-shift]), value)
        steps.append(empty)
    return value, Cat(*reversed(steps))


def pack(
    m: Module, o: Signal, magnitude: Value, sign: Value, *, nan: Value, special: Value, nothing: Value, use: Value
) -> None:
    """Sets register ``o`` to a result: 31 bits of magnitude and a sign.

    ``special``: it is infinite, or, with ``nan``, the NaN. ``nothing``: else it is zero. Without ``use`` ``o`` is 0.
    Most bits are chosen by resets of flip-flops, which cost no LUTs.
    """
    top = FRACTION_BITS - 1
    m.d.sync += [
        o[:top].eq(magnitude[:top]),
        o[top].eq(Mux(special, nan, magnitude[top])),
        o[FRACTION_BITS:31].eq(magnitude[FRACTION_BITS:] | special.replicate(8)),
        o[31].eq(sign & ~nan),
    ]
    with m.If(special | nothing):
        m.d.sync += o[:top].eq(0)
    with m.If(nothing & ~special):
        m.d.sync += o[top:31].eq(0)
    with m.If(~use):
        m.d.sync += o.eq(0)
