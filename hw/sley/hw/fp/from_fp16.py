"""Conversion from fp16 to fp32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from sley.hw.fp.float32 import FRACTION_BITS

FP16_FRACTION_BITS = 10


def from_fp16(m: Module, name: str, pattern: Value) -> Value:
    """An fp16 as fp32, which is exact. Subnormal numbers are normalised, a NaN keeps its payload; +0 is 0 in all bits.

    ``m`` gets the logic, ``name`` is that of its signals. Combinational. Cost: some 60 LUTs of four inputs, six one
    behind another.
    """
    fraction, exponent, sign = pattern[:FP16_FRACTION_BITS], pattern[FP16_FRACTION_BITS:15], pattern[15]
    # A subnormal number moves left until its leading one is where that of a normal number is. Steps are found in its
    # upper eight bits; if they are zero, the two others are the number.
    upper, low = fraction[2:], fraction[:2]
    subnormal, tiny = Signal(name=f"{name}_subnormal"), Signal(name=f"{name}_tiny")
    step = Signal(3, name=f"{name}_step")
    m.d.comb += [
        subnormal.eq(exponent == 0),
        tiny.eq(~upper.any()),
        step[2].eq(~upper[4:].any()),
        step[1].eq(Mux(step[2], ~upper[2:4].any(), ~upper[6:].any())),
        step[0].eq(~Mux(step[2], Mux(step[1], upper[1], upper[3]), Mux(step[1], upper[5], upper[7]))),
    ]
    normalised: Value = fraction
    for place, bit in ((4, 2), (2, 1), (1, 0)):
        moved = Cat(Const(0, place), normalised[:-place])
        normalised = Mux(step[bit] & subnormal, moved, normalised)
    # Its leading one falls off.
    behind = Mux(tiny, Cat(Const(0, 9), low.all()), Cat(Const(0, 1), normalised[:-1]))
    result = Mux(subnormal, behind, normalised)
    # The exponent is 127 - 15 more, for subnormal numbers 112 less the places: 112 to 105, and 104 or 103.
    distance = Mux(tiny, Cat(~low[1], Const(4, 3)), Cat(step, Const(0, 1)))
    below = Signal(8, name=f"{name}_below")
    m.d.comb += below.eq(112 - distance)
    some = fraction.any()
    normal = Cat(exponent[:4], (~exponent[4] | exponent.all()).replicate(3), exponent[4])
    wide = Mux(subnormal, below & some.replicate(8), normal)
    return Cat(Const(0, FRACTION_BITS - FP16_FRACTION_BITS), result, wide, sign)
