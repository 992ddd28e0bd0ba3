"""A processing element of the systolic array."""

from collections.abc import Callable
from typing import Any

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.hw.core.ecp5_multiplier import Ecp5Multiplier, is_ecp5
from sley.hw.core.logic_multiplier import LogicMultiplier
from sley.hw.core.multipliers import Multiplier
from sley.hw.fp.add import Add
from sley.hw.fp.float32 import BIAS, INFINITY, NAN

BF16_FRACTION_BITS = 7
PRODUCT_BITS = 24
"""Sign, exponent and 15 fraction bits: what a product of two bf16 needs of an fp32. The other 8 bits are zero."""


def int8_sum_bits(config: ChipConfig) -> int:
    """|product| <= 2^14, so fold_depth = 2^k of them need 15 + k bits and, for +2^(14 + k) itself, the sign."""
    return 16 + (config.fold_depth - 1).bit_length()


BF16_FIELDS = data.StructLayout({"exponent": 8, "sign": 1, "zero": 1, "infinity": 1, "nan": 1})
"""What the product of two bf16 needs besides the fractions. An exponent of 0 is read as zero, whatever the fraction."""


def bf16_fields(lane: Any) -> Any:
    """The fields of a bf16."""
    fraction, exponent = lane[:BF16_FRACTION_BITS], lane[BF16_FRACTION_BITS:15]
    special, rest = exponent.all(), fraction.any()
    return BF16_FIELDS(Cat(exponent, lane[15], ~exponent.any(), special & ~rest, special & rest))


INT8_LATENCY = {1: 4, 2: 5}
"""Cycles from an activation to its int8 sum by the elements in a lane: operand, product, its way out of the
multiplier's block, (sum of two products,) sum."""

BF16_PRODUCT_LATENCY = 3
"""Cycles from a bf16 activation to its product as fp32."""


class ProcessingElement(wiring.Component):
    """Multiplies the lanes that pass by with its weight and adds the product to the sum from the north.

    Parameters
    ----------
    config : ChipConfig
    multiplier : Multiplier
        What it is made of on an FPGA; logic only without bf16.

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
        Of int8 products; ``sum_i`` joins those of the activation of INT8_LATENCY - 1 cycles ago.
    bf16 : In(1)
        What the activations are, for chips that know both: one register of the whole array. It must be constant from
        the cycle of the first activation of a type to the one in which the last sum has left.
    fields_i : In(BF16_FIELDS), fields_o : Out(BF16_FIELDS)
        Of ``activation_i`` if it is a bf16; otherwise they hold still.
    total_i : In(32), total_o : Out(32)
        fp32 sums of bf16 products; ``total_i`` joins the product of the activation of BF16_PRODUCT_LATENCY cycles ago.

    Both types share the operand registers and the first of the int8 multipliers, which is one bit wider than int8
    alone needs. What only bf16 needs holds still while int8 is at work.

    Latency INT8_LATENCY for int8, BF16_PRODUCT_LATENCY + Add.LATENCY for bf16. Cost: three lanes,
    ``lane_elements`` multipliers with their registers, their adders, and for bf16 40 bits of registers and ``Add``.
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
    fields_i: data.View
    fields_o: data.View
    total_i: Signal
    total_o: Signal

    def __init__(self, config: ChipConfig, multiplier: Multiplier = Multiplier.BLOCK) -> None:
        if multiplier is Multiplier.LOGIC and config.bf16:
            raise ValueError("the multiplier is of logic and the chip has bf16; only that of int8 can be")
        self._config = config
        self._multiplier = multiplier
        lane, total = config.lane_bits, signed(int8_sum_bits(config))
        members: dict[str, Any] = {"activation": lane, "swap": 1, "weight": lane, "take": 1, "sum": total}
        if config.bf16:
            members |= {"fields": BF16_FIELDS, "total": 32}
        super().__init__(
            {f"{name}_i": In(shape) for name, shape in members.items()}
            | {f"{name}_o": Out(shape) for name, shape in members.items()}
            | ({"bf16": In(1)} if config.bf16 else {})
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
        if self._multiplier is Multiplier.CROWDED_BLOCK:
            # Without an enable the block reads its weight in every cycle: from a register that swaps a cycle ahead of
            # ``active``, perhaps as the weight arrives.
            weight, load = Signal(self._config.lane_bits, name="ahead", reset_less=True), Const(1)
            with m.If(self.swap_i):
                m.d.sync += weight.eq(Mux(self.take_i, self.weight_i, spare))

        def factor(lane: Any) -> Any:
            """The low int8, or the significand of a bf16 with its leading one."""
            if not self._config.bf16:
                return lane.as_signed()
            return Cat(lane[:7], lane[7] | self.bf16, lane[7] & ~self.bf16).as_signed()

        def multiply(name: str, part: Callable[[Any], Any]) -> Any:
            """The product, in a register, of those parts of activation and weight."""
            if is_ecp5(platform):
                a, b = part(self.activation_i), part(weight)
                m.submodules[f"multiplier_{name}"] = multiplier = Ecp5Multiplier(len(a), len(b))
                m.d.comb += [multiplier.a.eq(a), multiplier.b.eq(b), multiplier.load.eq(load)]
                return multiplier.o
            product = Signal(signed(16), name=name, reset_less=True)
            m.d.sync += product.eq(part(activation) * part(active))
            return product

        def outside(name: str, product: Any) -> Any:
            """A register between the multiplier's block and the adder: the blocks are far from the logic."""
            # Yosys 0.70 loses multipliers if it takes this register into the DSP block of an iCE40. One with a reset it
            # leaves alone.
            reset_less = getattr(platform, "dsp_family", None) != "ice40"
            register = Signal(signed(16), name=f"{name}_outside", reset_less=reset_less)
            m.d.sync += register.eq(product)
            return register

        if self._multiplier is Multiplier.LOGIC:
            m.submodules.multiplier = logic = LogicMultiplier()
            m.d.comb += [logic.a.eq(self.activation_i), logic.b.eq(spare), logic.load.eq(swap)]
            m.d.sync += sum_o.eq(logic.o + self.sum_i)
            return m

        low = multiply("low", factor)
        if not self._config.bf16:
            m.d.sync += sum_o.eq(outside("low", low) + self.sum_i)
            return m

        high = multiply("high", lambda lane: lane[8:].as_signed())
        dot = Signal(signed(17), reset_less=True)
        m.d.sync += [dot.eq(outside("low", low) + outside("high", high)), sum_o.eq(dot + self.sum_i)]
        weight_fields = Signal(BF16_FIELDS, reset_less=True)
        with m.If(swap):
            m.d.sync += weight_fields.eq(bf16_fields(spare))
        self._bf16(m, self._register(m, "fields"), weight_fields, low[:16])
        return m

    def _register(self, m: Module, name: str) -> Signal:
        """What only passes by, delayed by one cycle."""
        register = Signal.like(getattr(self, f"{name}_o"), name=name, reset_less=True)
        m.d.sync += register.eq(getattr(self, f"{name}_i"))
        m.d.comb += getattr(self, f"{name}_o").eq(register)
        return register

    def _bf16(self, m: Module, a: data.View, w: data.View, significand: Signal) -> None:
        """From the product of the significands, in [2^14, 2^16), to the sum.

        A product below the normal range is exact on the grid of subnormals, so it is zero of its sign in any case.
        """
        exponent = Signal(range(-BIAS, 512), reset_less=True)
        sign, zero, infinity, nan = (Signal(name=name, reset_less=True) for name in ("sign", "zero", "infinity", "nan"))
        product = Signal(PRODUCT_BITS, reset_less=True)
        top = significand[-1]
        scaled = Signal(range(-BIAS, 513))
        pattern = Signal(PRODUCT_BITS - 1)
        rest = 32 - PRODUCT_BITS
        m.d.comb += scaled.eq(exponent + top)
        with m.If(nan | infinity | (scaled >= 255)):
            m.d.comb += pattern.eq(Mux(nan, NAN >> rest, INFINITY >> rest))
        with m.Elif(~zero & (scaled > 0)):
            m.d.comb += pattern.eq(Cat(Mux(top, significand[:15], significand[:14] << 1), scaled[:8]))
        with m.If(self.bf16):
            m.d.sync += [
                exponent.eq(a.exponent + w.exponent - BIAS),
                sign.eq(a.sign ^ w.sign),
                zero.eq(a.zero | w.zero),
                infinity.eq(a.infinity | w.infinity),
                nan.eq(a.nan | w.nan | ((a.infinity | w.infinity) & (a.zero | w.zero))),
            ]
        with m.If(self.bf16):
            m.d.sync += product.eq(Cat(pattern, sign & ~nan))
        m.submodules.add = add = Add()
        m.d.comb += [
            add.a.eq(self.total_i),
            add.b.eq(Cat(Const(0, rest), product)),
            self.total_o.eq(add.o),
        ]
