"""Two products of int8 from one DSP block of an ECP5."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from sley.hw.core.matrix.multiplier.ecp5 import Ecp5Multiplier

SHIFT = 9
"""Bits by which the second factor is above the first: the most that leaves both in 18 bits."""
OVERLAP = 16 - SHIFT
"""Bits in which the products overlap."""


class PairMultiplier(wiring.Component):
    """Signed products of a registered int8 and two others, for two elements side by side.

    A block of 18 x 18 multiplies ``a`` with ``2^9 east + west``, whose product is ``2^9 a east + a west``. Its low nine
    bits are those of the west product. What lies above is the east product plus the upper seven bits of the west one.
    The first modulo 2^7 is a small multiplication in LUTs, beside that in the block; so the second is a difference of
    seven bits, and then the first one of sixteen, which has a cycle of its own: the activation reaches the east element
    a cycle after the west one.

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

    Cost
    ----
    One MULT18X18D, 84 LUTs, 94 flip-flops.

    Source
    ------
    Xilinx WP486, "Deep learning with INT8 optimization on Xilinx devices", 2017, for wider blocks in which the products
    do not overlap.
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
        both = Signal(signed(SHIFT + 9), reset_less=True)
        east = Signal(OVERLAP, name="low_east", reset_less=True)
        with m.If(self.load):  # 2^9 east + west
            m.d.sync += [both.eq(Cat(self.west, self.west[-1], (self.east - self.west[-1])[:9])), east.eq(self.east)]

        m.submodules.multiplier = multiplier = Ecp5Multiplier(len(self.a), len(both))
        m.d.comb += [multiplier.a.eq(self.a), multiplier.b.eq(both), multiplier.load.eq(1)]
        product = multiplier.o
        # Low bits of the east product, bit by bit: a multiplication here would become a DSP block of its own.
        rows = [Mux(self.a[k], east[: OVERLAP - k], 0) for k in range(OVERLAP)]
        sums = [Signal(OVERLAP - k, name=f"rows_{k}", reset_less=True) for k in (0, 2, 4)]
        overlap = Signal(OVERLAP, reset_less=True)
        above = Signal(signed(16), reset_less=True)  # the east product, and what the west one adds to it
        west_o, east_o = (Signal(signed(16), name=f"{name}_product", reset_less=True) for name in ("west", "east"))
        m.d.sync += [
            sums[0].eq(rows[0] + (rows[1] << 1)),
            sums[1].eq(rows[2] + (rows[3] << 1)),
            sums[2].eq((rows[4] + (rows[5] << 1))[:3] + (rows[6] << 2)),
            overlap.eq(sums[0] + ((sums[1] + (sums[2] << 2))[:5] << 2)),
            west_o.eq(Cat(product[:SHIFT], (product[SHIFT:16] - overlap)[:OVERLAP])),
            above.eq(product[SHIFT:]),
            east_o.eq(above - west_o[SHIFT:].as_signed()),
        ]
        m.d.comb += [self.west_o.eq(west_o), self.east_o.eq(east_o)]
        return m
