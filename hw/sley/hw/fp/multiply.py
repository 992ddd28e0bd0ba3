"""fp32 multiplication, and that of int32 on the same multipliers."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.timing import FP32_MULTIPLY
from sley.hw.fp.float32 import FRACTION_BITS, SIGNIFICAND_BITS, Float32, pack

SPLIT = 16
"""Bits of the lower part of an operand: half of an int32. The upper part of a significand are its other 8 bits."""

_OTHER = data.StructLayout({"sign": 1, "zero": 1, "special": 1, "nan": 1})
"""What travels beside the significands. ``special``: infinite or NaN."""
BIASED_ONE = 128
"""Exponents travel as the sum of two biased ones and 1, which is this number and the exponent of the product."""


class Multiply(wiring.Component):
    """o = a * b, rounded to nearest even; on request the low 32 bits of the product of int32 besides.

    Stages: 1 forms four products of parts of significands; 2 sums them; 3 normalises and decides which way to round;
    4 rounds and packs. Rounding takes place as if subnormal results existed: one exponent below the normal range that
    moves the last place up by one bit, so that a product of 24 ones there rounds to the smallest normal number whatever
    follows; all others there become zero.

    A product of int32 modulo 2^32 takes three of the four products, with other upper parts, and their sum of stage 2.

    Parameters
    ----------
    integer : bool
        There are products of int32.

    Members
    -------
    use : In(1)
        0 makes ``o`` 0; constant while operands are in flight.
    a, b : In(32)
        The operands, as bit patterns.
    a_nan : In(1)
        a is a NaN, which is known where it comes from.
    o : Out(32)
        The product of the operands of LATENCY cycles ago.
    nan : Out(1)
        It is a NaN.
    integer : In(1)
        The operands are int32, and ``use`` is 0; constant while operands are in flight. With ``integer`` alone.
    low : Out(32)
        The low 32 bits of the product of those of LATENCY cycles ago, or 0. With ``integer`` alone.

    Latency
    -------
    LATENCY cycles.

    Throughput
    ----------
    One product per cycle.

    Cost
    ----
    Multipliers of 16x16, 16x8, 8x16 and 8x8, some 230 flip-flops, carry chains of 25, 32 and 31 bits. With ``integer``
    two of 16x16 in the middle, 64 flip-flops and 18 LUTs besides.
    """

    LATENCY = FP32_MULTIPLY

    use: Signal
    a: Signal
    a_nan: Signal
    b: Signal
    o: Signal
    nan: Signal
    integer: Signal
    low: Signal

    def __init__(self, *, integer: bool = False) -> None:
        self._integer = integer
        more = {"integer": In(1), "low": Out(32)} if integer else {}
        super().__init__({"use": In(1), "a": In(32), "a_nan": In(1), "b": In(32), "o": Out(32), "nan": Out(1)} | more)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = Float32(self.a), Float32(self.b)
        other = [Signal(_OTHER, name=f"other_{stage}", reset_less=True) for stage in range(1, 4)]
        m.d.sync += [after.eq(before) for before, after in pairwise(other)]
        exponent = [Signal(9, name=f"exponent_{stage}", reset_less=True) for stage in range(1, 4)]

        # 1: products of parts; the leading one of an operand that is zero does no harm, because "zero" overrules
        upper = SIGNIFICAND_BITS - SPLIT
        widths = (SPLIT, upper)
        a_parts, b_parts = (self._parts(x) for x in (self.a, self.b))
        parts = [
            [Signal(widths[i] + widths[j], name=f"part_{i}{j}", reset_less=True) for j in range(2)] for i in range(2)
        ]
        # What is above the significands' products counts for no product of int32.
        m.d.sync += [parts[i][j].eq(a_parts[i] * b_parts[j]) for i in range(2) for j in range(2) if not i & j]
        m.d.sync += parts[1][1].eq(a_parts[1][:upper] * b_parts[1][:upper])
        zero, special = a.is_zero() | b.is_zero(), a.exponent.all() | b.exponent.all()
        m.d.sync += [
            exponent[0].eq((Cat(1, a.exponent) + Cat(1, b.exponent))[1:]),
            other[0].sign.eq(a.sign ^ b.sign),
            other[0].zero.eq(zero),
            other[0].special.eq(special),
            other[0].nan.eq(self.a_nan | b.is_nan() | (special & zero)),
        ]

        # 2: the product, in [1, 4)
        product = Signal(2 * SIGNIFICAND_BITS, reset_less=True)
        middle = parts[0][1] + parts[1][0]
        m.d.sync += [
            product.eq(Cat(parts[0][0], parts[1][1]) + (middle << SPLIT)),
            exponent[1].eq(exponent[0]),
        ]

        # 3: normalise and decide on rounding
        top = product[-1]
        significand, guard, sticky = Signal(SIGNIFICAND_BITS), Signal(), Signal()
        fraction, up, top_3 = Signal(FRACTION_BITS, reset_less=True), Signal(reset_less=True), Signal(reset_less=True)
        just_below, overflow = Signal(reset_less=True), Signal(reset_less=True)
        is_just_below = Mux(top, exponent[1] == BIASED_ONE - 1, exponent[1] == BIASED_ONE)
        m.d.comb += [
            Cat(guard, significand).eq(Mux(top, product[FRACTION_BITS:], product[FRACTION_BITS - 1 : -1])),
            sticky.eq(product[: FRACTION_BITS - 1].any() | (top & product[FRACTION_BITS - 1])),
        ]
        m.d.sync += [
            fraction.eq(significand),
            up.eq((guard & (significand[0] | sticky)) | is_just_below),
            just_below.eq(is_just_below),
            overflow.eq((exponent[1] >= BIASED_ONE + 255) | (top & (exponent[1] == BIASED_ONE + 254))),
            other[2].zero.eq(other[1].zero | (exponent[1] < BIASED_ONE - 1) | (~top & (exponent[1] == BIASED_ONE - 1))),
            exponent[2].eq(exponent[1]),
            top_3.eq(top),
        ]

        # 4: round and pack
        biased, last = Cat(exponent[2][:7], ~exponent[2][7]), other[2]
        packed = (Cat(1, fraction, biased) + Cat(up, Const(0, FRACTION_BITS), top_3))[1:32]
        special = last.special | overflow
        nothing = last.zero | (just_below & ~packed[FRACTION_BITS])
        m.d.sync += self.nan.eq(last.nan & self.use)
        pack(m, self.o, packed, last.sign, nan=last.nan, special=special, nothing=nothing, use=self.use)

        # 3 and 4 of int32
        if self._integer:
            low_3 = Signal(32, reset_less=True)
            m.d.sync += [low_3.eq(product), self.low.eq(low_3)]
            with m.If(~self.integer):
                m.d.sync += self.low.eq(0)
        return m

    def _parts(self, x: Value) -> tuple[Value, Value]:
        """The lower and the upper part of an operand: of its significand, or of an int32."""
        if not self._integer:
            return x[:SPLIT], Cat(x[SPLIT:FRACTION_BITS], 1)
        above = x[SIGNIFICAND_BITS:] & self.integer.replicate(32 - SIGNIFICAND_BITS)
        return x[:SPLIT], Cat(x[SPLIT:FRACTION_BITS], x[FRACTION_BITS] | ~self.integer, above)
