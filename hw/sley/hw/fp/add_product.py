"""Addition of a product of two bf16 to an fp32 sum."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.timing import FP32_ADD_PRODUCT
from sley.hw.fp.carry_chain import ChosenIncrement, SumOfChosen
from sley.hw.fp.float32 import FRACTION_BITS, Float32

PRODUCT_BITS = 16

PRODUCT = data.StructLayout(
    {"significand": PRODUCT_BITS, "exponent": 8, "sign": 1, "zero": 1, "special": 1, "nan": 1},
)
"""The product of two bf16: a significand in [1, 4) with 14 places behind the point. With ``zero`` only the sign
counts. ``special``: infinite or NaN, and the exponent does not count."""

_NUMBER = data.StructLayout({"fraction": FRACTION_BITS, "exponent": 8, "sign": 1})
_STATE = data.StructLayout({"zero": 1, "nan": 1})

TOTAL = data.StructLayout({**_NUMBER.members, **_STATE.members})
"""An fp32 between two additions, and what is known of it. With ``zero`` the fraction is 0 and the exponent does not
count; with ``nan`` the exponent is that of an infinity and the fraction does not count."""


def unpack_total(pattern: Value) -> Value:
    """An fp32 as TOTAL."""
    number = Float32(pattern)
    zero = number.is_zero()
    fraction = number.fraction & ~zero.replicate(FRACTION_BITS)
    return Cat(fraction, pattern[FRACTION_BITS:], zero, number.is_nan())


def pack_total(total: data.View) -> Value:
    """A TOTAL of ``AddProduct`` as fp32; at most one LUT's inputs a bit."""
    exponent = total.exponent & ~total.zero.replicate(8)
    return Cat(total.fraction[:-1], total.fraction[-1] | total.nan, exponent, total.sign)


_BELOW = 25
_WIDTH = 2 + 1 + _BELOW
"""A sum: two places above the larger operand's units, the units, 25 places behind the point."""

_OTHER = data.StructLayout({"sign": 1, "zero_sign": 1, "special": 1, "nan": 1})
"""What travels beside the significands: the sign of the larger operand and of an exact zero; infinite or NaN; NaN."""


class AddProduct(wiring.Component):
    """o = total + product, rounded to nearest even.

    Stages: 1 compares the exponents; 2 orders the operands by them and begins to align the smaller one; 3 goes on, and
    the adder of 4 takes the last step; 5 and 6 normalise; 7 takes the last step, rounds and packs.

    The order is that of exponents, so that a difference may be negative: if it is, then both exponents are nearly
    the same, and it is exact. It is normalised as it is, with zeros behind it, and then inverted: what it lacks to its
    magnitude is one unit of the place behind all places, as if ones went on without an end. Rounding sees to that.

    The product is one place longer than normalised, which costs a bit of the adder and saves the product's own
    normalisation. A sum below the smallest normal number is exact and becomes zero of its sign; a sum that is exactly
    zero is negative only if both operands are.

    Members
    -------
    enable : In(1)
        The operands are taken; otherwise stage 1 keeps those before, and what is behind it comes to rest.
    total : In(TOTAL), product : In(PRODUCT)
        The operands.
    o : Out(TOTAL)
        The sum of the operands of LATENCY cycles ago.

    Latency
    -------
    LATENCY cycles.

    Throughput
    ----------
    One sum per cycle.

    Cost
    ---- Two 28-bit shifters of which the last steps are in the carry chains of 28 and 31 bits, two more of 8 and 9
    bits, some 400 flip-flops.
    """

    LATENCY = FP32_ADD_PRODUCT

    enable: Signal
    total: data.View
    product: data.View
    o: data.View

    def __init__(self) -> None:
        super().__init__({"enable": In(1), "total": In(TOTAL), "product": In(PRODUCT), "o": Out(TOTAL)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        other = [Signal(_OTHER, name=f"other_{stage}", reset_less=True) for stage in range(1, 7)]
        exponent = [Signal(8, name=f"exponent_{stage}", reset_less=True) for stage in range(2, 6)]
        for line in (other, exponent):
            m.d.sync += [after.eq(before) for before, after in pairwise(line)]

        # 1: compare exponents
        total, product = self.total, self.product
        total_1 = Signal(FRACTION_BITS + 1, reset_less=True)
        product_1 = Signal(PRODUCT_BITS, reset_less=True)
        total_exponent_1 = Signal(8, reset_less=True)
        product_exponent_1 = Signal(8, reset_less=True)
        distance_1 = Signal(8, reset_less=True)
        swap_1 = Signal(reset_less=True)
        subtract_1 = Signal(reset_less=True)
        product_sign_1 = Signal(reset_less=True)
        product_zero_1 = Signal(reset_less=True)
        distance = Signal(9)
        infinite = total.exponent.all()
        m.d.comb += distance.eq(product.exponent + ~total.exponent)
        with m.If(self.enable):
            m.d.sync += [
                total_1.eq(Cat(total.fraction, ~total.zero)),
                product_1.eq(product.significand),
                product_zero_1.eq(product.zero),
                total_exponent_1.eq(total.exponent),
                product_exponent_1.eq(product.exponent),
                distance_1.eq(distance),
                swap_1.eq(((distance[8] | total.zero) & ~product.zero) | product.special),
                subtract_1.eq(total.sign ^ product.sign),
                product_sign_1.eq(product.sign),
                other[0].sign.eq(total.sign),
                other[0].zero_sign.eq(total.sign & product.sign),
                other[0].special.eq(infinite | product.special),
                other[0].nan.eq(total.nan | product.nan | (infinite & product.special & (total.sign ^ product.sign))),
            ]

        # 2: order; the smaller one's first step is 16. A smaller total begins one place lower, with one less to go. A
        # product that is zero is the smaller one, and nothing is left of it. LUTs clear what is few bits, as all
        # flip-flops of a tile of an ECP5 have the same reset or none.
        far = (distance_1[5:] ^ ~swap_1.replicate(3)).any()
        steps = Signal(5)
        near, shifted = Signal(), Signal()
        m.d.comb += [
            steps.eq((distance_1[:5] ^ ~swap_1.replicate(5)) | far.replicate(5)),
            near.eq(~(steps[4] | product_zero_1)),
            shifted.eq(steps[4] & ~product_zero_1),
        ]
        larger_2 = Signal(FRACTION_BITS + 2, reset_less=True)
        low = FRACTION_BITS + 2 - PRODUCT_BITS
        m.d.sync += [
            larger_2[:low].eq(total_1 & ~swap_1.replicate(low)),
            larger_2[low:-1].eq(Mux(swap_1, product_1[:-1], total_1[low:])),
            larger_2[-1].eq(product_1[-1] & swap_1),
            other[1].sign.eq(Mux(swap_1, product_sign_1, other[0].sign)),
            exponent[0].eq(Mux(swap_1, product_exponent_1, total_exponent_1)),
        ]
        smaller = Mux(swap_1, Cat(Const(0, 1), total_1, Const(0, 2)), Cat(Const(0, 11), product_1))
        upper_2 = Signal(PRODUCT_BITS, reset_less=True)  # what both have; below is what only the total has there
        middle_2 = Signal(10, reset_less=True)
        lower_2 = Signal(11, reset_less=True)
        m.d.sync += [
            upper_2.eq(smaller[11:] & near.replicate(PRODUCT_BITS)),
            middle_2.eq(total_1[:10] & (~steps[4] & swap_1).replicate(10)),
            lower_2.eq(smaller[16:] & shifted.replicate(11)),
        ]
        steps_2 = Signal(4, reset_less=True)
        subtract_2 = Signal(reset_less=True)
        sticky_2 = Signal(reset_less=True)
        m.d.sync += [
            steps_2.eq(steps),
            subtract_2.eq(subtract_1),
            sticky_2.eq(shifted & Mux(swap_1, total_1[:15].any(), product_1[:5].any())),
        ]

        # 3: align all but the last step, and invert for a difference
        aligned: Value = Cat(lower_2 | Cat(Const(0, 1), middle_2), upper_2)
        sticky: Value = sticky_2
        for step in (3, 2, 1):
            sticky = sticky | (steps_2[step] & aligned[: 1 << step].any())
            aligned = Mux(steps_2[step], aligned >> (1 << step), aligned)
        sticky = sticky | (steps_2[0] & aligned[0])
        inverted = (aligned ^ subtract_2.replicate(27))[:27]
        larger_3, subtract_3 = Signal.like(larger_2, name="larger_3"), Signal(reset_less=True)
        aligned_3 = Signal(27, reset_less=True)
        step_3 = Signal(reset_less=True)
        sticky_3 = Signal(reset_less=True)
        carry_3 = Signal(reset_less=True)
        m.d.sync += [
            larger_3.eq(larger_2),
            aligned_3.eq(inverted),
            step_3.eq(steps_2[0]),
            subtract_3.eq(subtract_2),
            sticky_3.eq(sticky),
            carry_3.eq(subtract_2 & ~sticky),
        ]

        # 4: add, with the last step
        m.submodules.sum = adder = SumOfChosen(_WIDTH)
        sum_4 = Signal(_WIDTH, reset_less=True)
        subtract_4 = Signal(reset_less=True)
        sticky_4 = Signal(reset_less=True)
        m.d.comb += [
            adder.a.eq(Cat(Const(0, 2), larger_3)),
            adder.b.eq(Cat(aligned_3[1:], subtract_3.replicate(2))),
            adder.c.eq(Cat(aligned_3, subtract_3)),
            adder.choose.eq(step_3),
            adder.carry.eq(carry_3),
        ]
        m.d.sync += [sum_4.eq(adder.o), subtract_4.eq(subtract_3), sticky_4.eq(sticky_3)]

        # 5: normalise by 16 and 8; what counts are the places at the top that are as the sign
        negative = Signal()
        m.d.comb += negative.eq(subtract_4 & sum_4[-1])
        first, second, third = (Signal(name=name) for name in ("first", "second", "third"))
        m.d.comb += [
            part.eq(_all_equal(sum_4[begin : begin + 8], negative))
            for part, begin in ((first, 20), (second, 12), (third, 4))
        ]
        by_16 = Signal()
        by_8 = Signal()
        m.d.comb += [by_16.eq(first & second), by_8.eq(first & (~second | third))]
        sum_5 = Signal(_WIDTH, reset_less=True)
        eights_5 = Signal(2, reset_less=True)
        negative_5 = Signal(reset_less=True)
        sticky_5 = Signal(reset_less=True)
        m.d.sync += [
            sum_5[:8].eq(sum_4[:8] & ~(by_16 | by_8).replicate(8)),
            sum_5[8:].eq(_left(_left(sum_4, by_16, 16), by_8, 8)[8:]),
            eights_5.eq(Cat(by_8, by_16)),
            negative_5.eq(negative),
            sticky_5.eq(sticky_4),
        ]

        # 6: normalise by 4 and 2, and invert a negative one
        first, second, third = (_all_equal(sum_5[begin : begin + 2], negative_5) for begin in (26, 24, 22))
        by_4 = Signal()
        by_2 = Signal()
        m.d.comb += [by_4.eq(first & second), by_2.eq(first & (~second | third))]
        normal = _left(_left(sum_5, by_4, 4), by_2, 2)
        sum_6 = Signal(_WIDTH - 2, reset_less=True)
        exponent_6 = Signal(signed(9), reset_less=True)
        negative_6 = Signal(reset_less=True)
        sticky_6 = Signal(reset_less=True)
        magnitude = Signal(_WIDTH - 2)
        m.d.comb += magnitude.eq(normal[2:] ^ negative_5.replicate(_WIDTH - 2))
        m.d.sync += [
            sum_6.eq(magnitude),
            exponent_6.eq(exponent[-1] + Cat(magnitude[-1], ~by_2, ~by_4, ~eights_5, 1).as_signed()),
            negative_6.eq(negative_5),
            sticky_6.eq(sticky_5 | normal[:2].any()),
        ]

        self._round(m, sum_6, exponent_6, negative_6, sticky_6, other[5])
        return m

    def _round(
        self, m: Module, sum_6: Signal, exponent_6: Signal, negative_6: Signal, sticky_6: Signal, last: data.View
    ) -> None:
        """Stage 7: normalises by 1, rounds and packs."""
        stays = sum_6[-1]
        even, half = Mux(stays, sum_6[2], sum_6[1]), Mux(stays, sum_6[1], sum_6[0])
        rest = sticky_6 | (stays & sum_6[0])
        m.submodules.round = round_ = ChosenIncrement(FRACTION_BITS, 8, 3)
        m.d.comb += [
            round_.a.eq(sum_6[1:-2]),
            round_.b.eq(sum_6[2:-1]),
            round_.choose.eq(stays),
            round_.high.eq(exponent_6),
            round_.carry.eq(Mux(negative_6, half | even, half & (rest | even))),
        ]
        # The exponent lacks 3: from 252 on the sum is infinite. From -3 down it is below the smallest normal number,
        # unless a negative one at -3 has been rounded to that number.
        below, end = exponent_6[-1], exponent_6[2:8].all()
        empty = ~sum_6[-2:].any()
        nothing = Signal()
        special = Signal()
        m.d.comb += [
            nothing.eq(empty | (below & ~(end & (exponent_6[1] | (exponent_6[0] & round_.o[FRACTION_BITS]))))),
            special.eq(last.special | (end & ~below)),
        ]
        # A flip-flop can be set for nothing if that is how it begins. Two signals: simulators keep each in a word.
        number = Signal(_NUMBER, name="result", init={"exponent": 255}, reset_less=True)
        state = Signal(_STATE, name="result_state", reset_less=True)
        m.d.comb += self.o.eq(Cat(number, state))
        m.d.sync += [
            Cat(number.fraction, number.exponent).eq(round_.o),
            number.sign.eq(Mux(empty, last.zero_sign, last.sign ^ negative_6) & ~last.nan),
            state.zero.eq(nothing & ~special),
            state.nan.eq(last.nan),
        ]
        with m.If(special):
            m.d.sync += number.exponent.eq(~0)
        with m.If(special | nothing):
            m.d.sync += number.fraction.eq(0)


def _left(value: Value, shift: Value, step: int) -> Value:
    """``value``, or with ``shift`` so many places to the left."""
    return Mux(shift, Cat(Const(0, step), value[:-step]), value)


def _all_equal(bits: Value, one: Value) -> Value:
    """Whether all the bits are as that one."""
    return ~(bits ^ one.replicate(len(bits))).any()
