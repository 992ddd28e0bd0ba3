"""Two products of int8 from one DSP block."""

from amaranth import Array, Cat, Const, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.core.ecp5_multiplier import Ecp5Multiplier, is_ecp5

SHIFT = 9
"""Bits by which the second factor is above the first: the most that leaves both in 18 bits."""
OVERLAP = 16 - SHIFT
"""Bits in which the products overlap."""


class PairMultiplier(wiring.Component):
    """Signed products of a registered int8 and two others, for two elements side by side.

    A block of 18 x 18 multiplies ``a`` with ``2^9 east + west``, whose product is ``2^9 a east + a west``. Its low nine
    bits are those of the west product. What lies above is the east product plus the upper seven bits of the west one.
    The first modulo 2^7 is a small multiplication in LUTs, by two bits of ``a`` at a time; so the second is a
    difference of seven bits, and then the first one of sixteen, which has a cycle of its own: the activation reaches
    the east element a cycle after the west one.

    Members
    -------
    a : In(signed(8))
        Read in every cycle.
    west : In(signed(8)), east : In(signed(8)), load : In(1)
        Read in cycles with ``load``, for ``a`` of the next cycle, and kept.
    west_o : Out(signed(16))
        Product of the ``a`` of three cycles ago.
    east_o : Out(signed(16))
        Product of the ``a`` of four cycles ago.

    Cost on an ECP5: one MULT18X18D, 70 LUTs, 87 flip-flops.
    Source of the method: Xilinx WP486, "Deep learning with INT8 optimization on Xilinx devices", 2017, for wider blocks
    in which the products do not overlap.
    """

    a: Signal
    west: Signal
    east: Signal
    load: Signal
    west_o: Signal
    east_o: Signal

    def __init__(self) -> None:
        factor, product = signed(8), signed(16)
        super().__init__(
            {
                **{name: In(factor) for name in ("a", "west", "east")},
                "load": In(1),
                **{f"{name}_o": Out(product) for name in ("west", "east")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a = Signal.like(self.a, name="factor_a", reset_less=True)
        both = Signal(signed(SHIFT + 9), reset_less=True)
        ahead, once, thrice = (
            Signal(OVERLAP, name=f"{name}_east", reset_less=True) for name in ("ahead", "once", "thrice")
        )
        m.d.sync += [a.eq(self.a), once.eq(ahead), thrice.eq(ahead + (ahead << 1))]
        with m.If(self.load):
            m.d.sync += [both.eq((self.east << SHIFT) + self.west), ahead.eq(self.east)]

        product = Signal(signed(len(a) + len(both)))
        if is_ecp5(platform):
            m.submodules.multiplier = multiplier = Ecp5Multiplier(len(a), len(both))
            m.d.comb += [
                multiplier.a.eq(self.a),
                multiplier.b.eq(both),
                multiplier.load.eq(1),
                product.eq(multiplier.o),
            ]
        else:
            b, register = Signal.like(both, name="factor_b", reset_less=True), Signal.like(product, reset_less=True)
            m.d.sync += [b.eq(both), register.eq(a * b)]
            m.d.comb += product.eq(register)
        # Low bits of the east product, in two parts: a multiplication here would become a DSP block of its own.
        low, high = Signal(OVERLAP, reset_less=True), Signal(OVERLAP - 4, reset_less=True)
        multiples = Array((Const(0), once, once << 1, thrice))
        above = Signal(signed(16), reset_less=True)  # the east product, and what the west one adds to it
        west_o, east_o = (Signal(signed(16), name=f"{name}_product", reset_less=True) for name in ("west", "east"))
        m.d.sync += [
            low.eq(multiples[a[:2]] + (multiples[a[2:4]] << 2)),
            high.eq(multiples[a[4:6]] + Cat(Const(0, 2), a[6] & once[0])),
            west_o.eq(Cat(product[:SHIFT], (product[SHIFT:] - low - (high << 4))[:OVERLAP])),
            above.eq(product[SHIFT:]),
            east_o.eq(above - west_o[SHIFT:].as_signed()),
        ]
        m.d.comb += [self.west_o.eq(west_o), self.east_o.eq(east_o)]
        return m
