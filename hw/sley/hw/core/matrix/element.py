"""A processing element of the systolic array."""

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Module, Mux, ShapeLike, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.hw.core.matrix.multiplier.assignment import Multiplier
from sley.hw.core.matrix.multiplier.ecp5 import Ecp5Multiplier
from sley.hw.core.matrix.multiplier.logic import LogicMultiplier
from sley.hw.elaboration.platform import is_ecp5
from sley.hw.fp.add_product import PRODUCT, TOTAL, AddProduct

BF16_FRACTION_BITS = 7


def int8_sum_bits(config: ChipConfig) -> int:
    """|product| <= 2^14, so fold_depth = 2^k of them need 15 + k bits and, for +2^(14 + k) itself, the sign."""
    return 16 + (config.fold_depth() - 1).bit_length()


BF16_KIND = data.StructLayout({"zero": 1, "infinity": 1, "nan": 1})
"""What a bf16 is. An exponent of 0 is read as zero, whatever the fraction."""

BF16_FIELDS = data.StructLayout({"exponent": 8, "sign": 1, "kind": BF16_KIND})
"""What the product of two bf16 needs besides the fractions."""


def bf16_kind(lane: Value) -> Value:
    """What of BF16_KIND a bf16 is."""
    fraction, exponent = lane[:BF16_FRACTION_BITS], lane[BF16_FRACTION_BITS:15]
    special, rest = exponent.all(), fraction.any()
    return BF16_KIND(Cat(~exponent.any(), special & ~rest, special & rest))


def bf16_fields(lane: Value, kind: Value) -> Value:
    """The fields of a bf16 of that kind."""
    return BF16_FIELDS(Cat(lane[BF16_FRACTION_BITS:], kind))


class ProcessingElement(wiring.Component):
    """Multiplies the lanes that pass by with its weight and adds the product to the sum from the north.

    Both types share the operand registers and the first of the int8 multipliers, which is one bit wider than int8
    alone needs. What only bf16 needs holds still while int8 is at work.

    Parameters
    ----------
    config : ChipConfig
        The chip.
    multiplier : Multiplier
        What it is made of on an FPGA; logic, or half of a pair, only without bf16.

    Members
    -------
    activation_i : In(lane), activation_o : Out(lane)
        From the west; to the east one cycle later. A lane is ``lane_bits`` wide.
    swap_i : In(1), swap_o : Out(1)
        The spare weight becomes active for the activation of the next cycle and those behind it. To the east one cycle
        later.
    weight_i : In(lane), weight_o : Out(lane)
        Weights on their way south, one row a cycle.
    take_i : In(1), take_o : Out(1)
        ``weight_i`` becomes the spare weight; to the east one cycle later.
    sum_i : In(signed), sum_o : Out(signed)
        Of int8 products; ``sum_i`` joins those of the activation of INT8_ELEMENT - 1 cycles ago.
    bf16 : In(1)
        What the activations are, for chips that know both: one register of the whole array. It must be constant from
        the cycle of the first activation of a type to the one in which the last sum has left.
    kind_i : In(BF16_KIND), kind_o : Out(BF16_KIND)
        Of ``weight_i``.
    fields_i : In(BF16_FIELDS), fields_o : Out(BF16_FIELDS)
        Of ``activation_i`` if it is a bf16; otherwise they hold still.
    total_i : In(TOTAL), total_o : Out(TOTAL)
        fp32 sums of bf16 products; ``total_i`` joins the product of the activation of BF16_PRODUCT cycles ago.
    coming : Out(lane)
        For a ``PairMultiplier`` alone: the spare weight of the next cycle.
    product : In(signed(16))
        For a ``PairMultiplier`` alone: of the activation of INT8_ELEMENT - 1 cycles ago and the weight that was active
        for it.

    Raises
    ------
    ValueError
        If ``multiplier`` is for int8 alone and the chip has bf16.

    Latency
    -------
    INT8_ELEMENT for int8, BF16_PRODUCT + AddProduct.LATENCY for bf16.

    Cost
    ----
    Three lanes, ``lane_elements`` multipliers with their registers, their adders, and for bf16 60 bits of registers and
    ``AddProduct``. On an ECP5 with bf16: 485 LUTs, 532 flip-flops, two MULT18X18D without enables of their own.
    """

    activation_i: Signal
    activation_o: Signal
    swap_i: Signal
    swap_o: Signal
    weight_i: Signal
    weight_o: Signal
    take_i: Signal
    take_o: Signal
    sum_i: Signal
    sum_o: Signal
    bf16: Signal
    kind_i: data.View
    kind_o: data.View
    fields_i: data.View
    fields_o: data.View
    total_i: data.View
    total_o: data.View
    coming: Signal
    product: Signal

    def __init__(self, config: ChipConfig, multiplier: Multiplier = Multiplier.BLOCK) -> None:
        if multiplier in (Multiplier.PAIR, Multiplier.LOGIC) and config.has(ElementType.BF16):
            raise ValueError(f"the multiplier is {multiplier.name} and the chip has bf16; only that of int8 can be")
        self._config = config
        self._multiplier = multiplier
        lane, total = config.lane_bits, signed(int8_sum_bits(config))
        members: dict[str, ShapeLike] = {"activation": lane, "swap": 1, "weight": lane, "take": 1, "sum": total}
        if config.has(ElementType.BF16):
            members |= {"kind": BF16_KIND, "fields": BF16_FIELDS, "total": TOTAL}
        super().__init__(
            {f"{name}_i": In(shape) for name, shape in members.items()}
            | {f"{name}_o": Out(shape) for name, shape in members.items()}
            | ({"bf16": In(1)} if config.has(ElementType.BF16) else {})
            | ({"coming": Out(lane), "product": In(signed(16))} if multiplier is Multiplier.PAIR else {})
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spare = Signal(self._config.lane_bits, reset_less=True)
        active = Signal(self._config.lane_bits, reset_less=True)
        activation = self._register(m, "activation")
        swap = self._register(m, "swap")
        for name in ("weight", "take"):
            self._register(m, name)
        sum_o = Signal.like(self.sum_o, name="sum", reset_less=True)
        m.d.comb += self.sum_o.eq(sum_o)
        with m.If(self.take_i):
            m.d.sync += spare.eq(self.weight_i)
        with m.If(swap):
            m.d.sync += active.eq(spare)

        weight, load = spare, swap  # of a DSP block with registers
        if self._multiplier is Multiplier.CROWDED_BLOCK and not self._config.has(ElementType.BF16):
            # Without an enable the block reads its weight in every cycle: from a register that swaps a cycle ahead of
            # ``active``, perhaps as the weight arrives.
            weight, load = Signal(self._config.lane_bits, name="ahead", reset_less=True), Const(1)
            with m.If(self.swap_i):
                m.d.sync += weight.eq(Mux(self.take_i, self.weight_i, spare))

        def factor(lane: Value) -> Value:
            """The low int8, or the significand of a bf16 with its leading one."""
            if not self._config.has(ElementType.BF16):
                return lane.as_signed()
            return Cat(lane[:7], lane[7] | self.bf16, lane[7] & ~self.bf16).as_signed()

        def multiply(name: str, part: Callable[[Value], Value]) -> Value:
            """The product of those parts of activation and weight, of two cycles after they were registered.

            The DSP blocks are far from the logic, so there is a register more than multiplication needs: behind an
            int8 product, and in front of the block if the element knows bf16, whose weight needs registers here.
            """
            if is_ecp5(platform):
                bf16 = self._config.has(ElementType.BF16)
                a, b = (part(activation), part(active)) if bf16 else (part(self.activation_i), part(weight))
                m.submodules[f"multiplier_{name}"] = multiplier = Ecp5Multiplier(len(a), len(b))
                m.d.comb += [multiplier.a.eq(a), multiplier.b.eq(b), multiplier.load.eq(1 if bf16 else load)]
                return multiplier.o[:16].as_signed() if bf16 else outside(name, multiplier.o)
            product = Signal(signed(16), name=name, reset_less=True)
            m.d.sync += product.eq(part(activation) * part(active))
            return outside(name, product)

        def outside(name: str, product: Value) -> Value:
            """A register between the multiplier's block and the adder."""
            # Yosys 0.70 loses multipliers if it takes this register into the DSP block of an iCE40. One with a reset it
            # leaves alone.
            reset_less = getattr(platform, "dsp_family", None) != "ice40"
            register = Signal(signed(16), name=f"{name}_outside", reset_less=reset_less)
            m.d.sync += register.eq(product)
            return register

        if self._multiplier is Multiplier.PAIR:
            m.d.comb += self.coming.eq(Mux(self.take_i, self.weight_i, spare))
            m.d.sync += sum_o.eq(self.product + self.sum_i)
            return m
        if self._multiplier is Multiplier.LOGIC:
            m.submodules.multiplier = logic = LogicMultiplier()
            m.d.comb += [logic.a.eq(self.activation_i), logic.b.eq(spare), logic.load.eq(swap)]
            m.d.sync += sum_o.eq(logic.o + self.sum_i)
            return m

        low = multiply("low", factor)
        if not self._config.has(ElementType.BF16):
            m.d.sync += sum_o.eq(low + self.sum_i)
            return m

        high = multiply("high", lambda lane: lane[8:].as_signed())
        dot = Signal(signed(17), reset_less=True)
        m.d.sync += [dot.eq(low + high), sum_o.eq(dot + self.sum_i)]
        self._register(m, "kind")
        spare_kind, active_kind = Signal(BF16_KIND, reset_less=True), Signal(BF16_KIND, reset_less=True)
        with m.If(self.take_i):
            m.d.sync += spare_kind.eq(self.kind_i)
        with m.If(swap):
            m.d.sync += active_kind.eq(spare_kind)
        self._bf16(m, self._register(m, "fields"), bf16_fields(active, active_kind), low[:16])
        return m

    def _register(self, m: Module, name: str) -> Signal:
        """What only passes by, delayed by one cycle."""
        register = Signal.like(getattr(self, f"{name}_o"), name=name, reset_less=True)
        m.d.sync += register.eq(getattr(self, f"{name}_i"))
        m.d.comb += getattr(self, f"{name}_o").eq(register)
        return register

    def _bf16(self, m: Module, a: data.View, w: data.View, significand: Signal) -> None:
        """From the product of the significands, in [2^14, 2^16), to the sum.

        A product below the normal range is exact on the grid of subnormals, so it is zero of its sign in any case. With
        the exponents' sum at the ends of that range it depends on the significand. While there is no bf16, all rests.
        """
        biased = Signal(9, reset_less=True)  # the exponent, but for 128 that it is too large
        sign = Signal(reset_less=True)
        kind = Signal(BF16_KIND, reset_less=True)
        zero, infinity = a.kind.zero | w.kind.zero, a.kind.infinity | w.kind.infinity
        with m.If(self.bf16):
            m.d.sync += [
                biased.eq((Cat(1, a.exponent) + Cat(1, w.exponent))[1:]),
                sign.eq(a.sign ^ w.sign),
                kind.zero.eq(zero),
                kind.infinity.eq(infinity),
                kind.nan.eq(a.kind.nan | w.kind.nan | (infinity & zero)),
            ]

        low, high = biased[:7], biased[7:]
        product = Signal(PRODUCT, reset_less=True)  # but for the significand
        first = Signal(name="first_exponent", reset_less=True)
        last = Signal(name="last_exponent", reset_less=True)
        with m.If(self.bf16):
            m.d.sync += [
                product.exponent.eq(Cat(low, ~high[0])),
                product.sign.eq(sign),
                product.zero.eq(kind.zero | (high == 0)),
                product.special.eq(kind.infinity | kind.nan | (high == 3) | ((high == 2) & low.all())),
                product.nan.eq(kind.nan),
                first.eq((high == 1) & ~low.any()),
                last.eq((high == 2) & low[1:].all()),
            ]
        top = significand[-1]
        m.submodules.add = add = AddProduct()
        m.d.comb += [
            add.enable.eq(self.bf16),
            add.total.eq(self.total_i),
            add.product.eq(product),
            add.product.significand.eq(significand),
            add.product.zero.eq(product.zero | (first & ~top)),
            add.product.special.eq(product.special | (last & top)),
            self.total_o.eq(add.o),
        ]
