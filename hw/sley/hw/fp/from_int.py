"""Conversion from int8 and uint8 to fp32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from sley.hw.fp.float32 import FRACTION_BITS


def from_int8(m: Module, name: str, number: Value, use: Value, unsigned: Value | None = None) -> Value:
    """An int8 as fp32, which is exact; 0 without ``use``. ``m`` gets the logic, ``name`` is that of its signals.
    ``unsigned``: it is a uint8.

    Combinational. Cost: some 50 gates, five LUTs of four inputs one behind another.
    """
    negative = number[-1] if unsigned is None else number[-1] & ~unsigned
    below = [Const(0, 1), *(number[:bit].any() for bit in range(1, 8))]
    magnitude = [bit ^ (negative & ones) for bit, ones in zip(number, below, strict=True)]
    # Steps of a normalising shift to the left, each found beside the one before: by 4, by 2 in either half, by 1.
    step = Signal(3, name=f"{name}_step")
    upper, lower = number[4:], number[:4]
    small = upper.all() if unsigned is None else upper.all() & ~unsigned  # in magnitude
    m.d.comb += [
        step[2].eq(~upper.any() | (small & lower.any())),
        step[1].eq(Mux(step[2], ~(magnitude[3] | magnitude[2]), ~(magnitude[7] | magnitude[6]))),
    ]
    by_4 = [use & Mux(step[2], magnitude[bit - 4] if bit > 3 else 0, magnitude[bit]) for bit in range(8)]
    m.d.comb += step[0].eq(~Mux(step[1], by_4[5], by_4[7]))
    by_2 = [Mux(step[1], by_4[bit - 2] if bit > 1 else 0, by_4[bit]) for bit in range(8)]
    fraction = [Mux(step[0], by_2[bit - 1] if bit else 0, by_2[bit]) for bit in range(7)]
    # The exponent is BIAS + 7 - step, that is 134 to 127: a table without its rows is faster than a subtraction.
    all_ones = number[1:].all() if unsigned is None else number[1:].all() & ~unsigned
    is_one, some = Signal(name=f"{name}_is_one"), Signal(name=f"{name}_some")
    m.d.comb += [
        is_one.eq(use & number[0] & (all_ones | ~number[1:].any())),
        some.eq(use & number.any()),
    ]
    low = [some & step[0], some & ~(step[0] ^ step[1]), some & ~(step[2] ^ (step[1] & step[0]))]
    return Cat(Const(0, FRACTION_BITS - 7), *fraction, *low, is_one.replicate(4), some & ~is_one, negative & use)
