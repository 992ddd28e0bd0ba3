"""Conversion from bf16 to fp32."""

from amaranth.hdl import Cat, Const, Mux, Value

from sley.hw.fp.float32 import FRACTION_BITS, Float32


def from_bf16(pattern: Value) -> Value:
    """A bf16 as fp32, which is exact: its 16 bits are the upper half of the same number. Subnormal numbers become zero.

    Combinational. Cost: a comparison of 8 bits with zero, 7 gates.
    """
    number = Float32(Cat(Const(0, 16), pattern))
    fraction = Mux(number.is_zero(), Const(0, FRACTION_BITS), number.fraction)
    return Cat(fraction, number.exponent, number.sign)
