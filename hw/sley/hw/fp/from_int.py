"""Conversion from int8 to fp32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from sley.hw.fp.float32 import BIAS, FRACTION_BITS, normalise


def from_int8(m: Module, name: str, number: Value, use: Value) -> Value:
    """An int8 as fp32, which is exact; 0 without ``use``. ``m`` gets the logic, ``name`` is that of its signals.

    Combinational. Cost: some 45 gates.
    """
    sign = number[-1]
    below = [Const(0, 1), *(number[:bit].any() for bit in range(1, 8))]
    magnitude = Cat(bit ^ (sign & ones) for bit, ones in zip(number, below, strict=True))  # without a carry chain
    normal, distance = normalise(magnitude, (4, 2, 1))
    exponent = Signal(8, name=f"{name}_exponent")
    with m.Switch(distance):  # a table of 3 bits is faster than a subtraction
        for places in range(8):
            with m.Case(places):
                m.d.comb += exponent.eq(BIAS + 7 - places)
    # The leading one of ``normal`` is bit 7; its seven lower bits are the top of the fraction.
    top = Mux(normal[-1] & use, Cat(normal[:-1], exponent, sign), 0)
    return Cat(Const(0, FRACTION_BITS - 7), top)
