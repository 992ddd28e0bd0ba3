"""One lane of the vector unit: the arithmetic on some columns of the rows."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import FLAGS_LSB, FORMATS, BinaryOp, NumberType, Op, OperandType, Space, VectorOutput
from sley.hw.fp.add import Add
from sley.hw.fp.float32 import NAN, Float32
from sley.hw.fp.from_bf16 import from_bf16
from sley.hw.fp.from_int import FromInt8, FromInt32
from sley.hw.fp.maximum import Maximum
from sley.hw.fp.multiply import Multiply
from sley.hw.fp.to_bf16 import ToBF16
from sley.hw.fp.to_int import ToInt32

VECTOR_FLAGS = data.FlexibleLayout(
    16,
    {
        name: data.Field(unsigned(placed.width), placed.lsb - FLAGS_LSB)
        for name, placed in FORMATS[Op.VECTOR].layout.fields.items()
        if placed.lsb >= FLAGS_LSB
    },
)
"""The flags of a VECTOR instruction."""

MAX_LATENCY = 1 + Add.LATENCY + Add.LATENCY + (1 + Multiply.LATENCY) + 1 + ToInt32.LATENCY + 1
"""The longest way: FP32 with b_op = ADD, bias, scale and an integer output."""

_CONTROL = data.StructLayout(
    {
        "fp32": 1,  # dtype
        "a_int8": 1,  # A is an int8
        "b_int8": 1,
        "a_convert": 1,  # int8 to fp32
        "b_convert": 1,
        "a_bf16": 1,  # bf16 to fp32
        "b_bf16": 1,
        "integer_b": 1,  # add B as int32
        "float_b": 1,  # add B as fp32
        "maximum": 1,
        "integer_bias": 1,
        "float_bias": 1,
        "to_float": 1,  # int32 to fp32
        "scale": 1,
        "integer_relu": 1,
        "float_relu": 1,
        "round": 1,  # to int32
        "narrow": 1,  # to int8
        "bf16": 1,  # to bf16
    }
)
"""The decoded flags: registers that choose the ways, so that no decoding is in the paths of the data."""


class _Conversions:
    """The flags' conversions between the formats, on a chip with or without bf16."""

    def __init__(self, flags: data.View, bf16: bool) -> None:
        is_fp32 = flags.dtype == NumberType.FP32
        self.to_bf16 = (flags.out == VectorOutput.BF16) & bf16
        self.to_float = ~is_fp32 & (flags.scale | self.to_bf16)
        self.is_float = is_fp32 | self.to_float  # from the scale on
        self.to_int32 = self.is_float & ((flags.out == VectorOutput.INT32) | (flags.out == VectorOutput.INT8))


def bias_delay(flags: data.View) -> Value:
    """Cycles from the one in which both operands are in ``VectorLane``'s registers to the one that adds the bias."""
    binary = Mux((flags.dtype == NumberType.FP32) & (flags.b_op == BinaryOp.ADD), Add.LATENCY, 1)
    return 1 + Mux(flags.b_op == BinaryOp.MAX, Maximum.LATENCY, binary)


def scale_delay(flags: data.View, bf16: bool) -> Value:
    """The same to the cycle that multiplies by the scale."""
    bias = Mux((flags.dtype == NumberType.FP32) & flags.bias, Add.LATENCY, 1)
    return bias_delay(flags) + bias + Mux(_Conversions(flags, bf16).to_float, FromInt32.LATENCY, 1)


def lane_latency(flags: data.View, bf16: bool) -> Value:
    """The same to the cycle of ``o``."""
    convert = _Conversions(flags, bf16)
    output = Mux(convert.to_bf16, ToBF16.LATENCY, Mux(convert.to_int32, ToInt32.LATENCY, 0)) + 1
    return scale_delay(flags, bf16) + Mux(flags.scale, Multiply.LATENCY, 0) + 1 + output


class VectorLane(wiring.Component):
    """The steps of VECTOR: source, op B, bias, scale, relu, output.

    Each step has one way for int32 and one for fp32; the flags, constant during an instruction, choose the ways, and
    ``lane_latency`` tells how long the chosen ones take together. So no way carries delays for the sake of another.

    Parameters
    ----------
    bf16: whether the chip has bf16; without it none of its logic exists.
    parts: columns that the lane serves, one after the other.

    Members
    -------
    flags: of the instruction; constant from two cycles before its first operand until its last result.
    a, a_load: operand A, taken with ``a_load``: 32 bits, or an int8 in the lowest byte, or a bf16 in the upper half.
    b, b_load: operand B, likewise.
    bias_load, scale_load: copy the operand A that was taken into a row register.
    clear: all row registers become 0.
    row_part, bias_part, scale_part: if there are several columns: the one whose row register is written; the one that
        reaches the bias, and the scale, in the next cycle.
    o: the result; an INT8 output sign-extended, a BF16 output in the lower half.

    Latency ``lane_latency(flags, bf16)``, one element per cycle.
    Cost: two fp32 adders, a multiplier, a maximum, the conversions, two 32-bit adders, some 300 flip-flops
    besides those of the fp32 units; for each further column two words of flip-flops.
    """

    flags: data.View
    a: Signal
    a_load: Signal
    b: Signal
    b_load: Signal
    bias_load: Signal
    scale_load: Signal
    clear: Signal
    row_part: Signal
    bias_part: Signal
    scale_part: Signal
    o: Signal

    def __init__(self, bf16: bool, parts: int = 1) -> None:
        self._bf16 = bf16
        self._parts = parts
        indexes = ("row_part", "bias_part", "scale_part") if parts > 1 else ()
        super().__init__(
            {name: In(range(parts)) for name in indexes}
            | {
                "flags": In(VECTOR_FLAGS),
                "a": In(32),
                "a_load": In(1),
                "b": In(32),
                "b_load": In(1),
                "bias_load": In(1),
                "scale_load": In(1),
                "clear": In(1),
                "o": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        flags = self.flags
        is_fp32, convert = flags.dtype == NumberType.FP32, _Conversions(flags, self._bf16)
        a_bf16, b_bf16 = ((kind == OperandType.BF16) & self._bf16 for kind in (flags.a_type, flags.b_type))
        a_int8 = (flags.a_space == Space.SCRATCHPAD) & ~a_bf16
        b_int8 = (flags.b_space == Space.SCRATCHPAD) & ~b_bf16
        control = Signal(_CONTROL, reset_less=True)
        m.d.sync += [
            control.fp32.eq(is_fp32),
            control.a_int8.eq(a_int8),
            control.b_int8.eq(b_int8),
            control.a_convert.eq(is_fp32 & a_int8),
            control.b_convert.eq(is_fp32 & b_int8),
            control.a_bf16.eq(a_bf16),
            control.b_bf16.eq(b_bf16),
            control.integer_b.eq(~is_fp32 & (flags.b_op == BinaryOp.ADD)),
            control.float_b.eq(is_fp32 & (flags.b_op == BinaryOp.ADD)),
            control.maximum.eq(flags.b_op == BinaryOp.MAX),
            control.integer_bias.eq(~is_fp32 & flags.bias),
            control.float_bias.eq(is_fp32 & flags.bias),
            control.to_float.eq(convert.to_float),
            control.scale.eq(flags.scale),
            control.integer_relu.eq(flags.relu & ~convert.is_float),
            control.float_relu.eq(flags.relu & convert.is_float),
            control.round.eq(convert.to_int32),
            control.narrow.eq(flags.out == VectorOutput.INT8),
            control.bf16.eq(convert.to_bf16),
        ]

        # Sources
        operands = []
        for name, value, load in (("a", self.a, self.a_load), ("b", self.b, self.b_load)):
            taken = Signal(32, name=f"{name}_taken", reset_less=True)
            word = Signal(32, name=f"{name}_word", reset_less=True)
            m.submodules[f"{name}_from_int8"] = from_int8 = FromInt8()
            with m.If(load):
                m.d.sync += taken.eq(value)
            whole = Mux(control[f"{name}_bf16"], from_bf16(taken[16:]), taken) if self._bf16 else taken
            m.d.sync += word.eq(Mux(control[f"{name}_int8"], taken[:8].as_signed(), whole))
            m.d.comb += from_int8.i.eq(taken[:8].as_signed())
            operands.append((taken, Mux(control[f"{name}_convert"], from_int8.o, word)))
        (a_taken, a), (_, b) = operands

        bias, scale = (self._row_register(m, name, a_taken) for name in ("bias", "scale"))

        # op B
        m.submodules.add_b = add_b = Add()
        m.submodules.maximum = maximum = Maximum()
        integer_b, with_b = Signal(32, reset_less=True), Signal(32)
        m.d.sync += integer_b.eq(a + Mux(control.integer_b, b, 0))
        m.d.comb += [
            Cat(add_b.a, maximum.a).eq(a.replicate(2)),
            Cat(add_b.b, maximum.b).eq(b.replicate(2)),
            maximum.integer.eq(~control.fp32),
            with_b.eq(Mux(control.float_b, add_b.o, Mux(control.maximum, maximum.o, integer_b))),
        ]

        # bias
        m.submodules.add_bias = add_bias = Add()
        integer_bias, with_bias = Signal(32, reset_less=True), Signal(32)
        m.d.sync += integer_bias.eq(with_b + Mux(control.integer_bias, bias, 0))
        m.d.comb += [
            add_bias.a.eq(with_b),
            add_bias.b.eq(bias),
            with_bias.eq(Mux(control.float_bias, add_bias.o, integer_bias)),
        ]

        # scale
        m.submodules.from_int32 = from_int32 = FromInt32()
        m.submodules.multiply = multiply = Multiply()
        as_it_is, unscaled, scaled = Signal(32, reset_less=True), Signal(32), Signal(32)
        m.d.sync += as_it_is.eq(with_bias)
        m.d.comb += [
            from_int32.i.eq(with_bias.as_signed()),
            unscaled.eq(Mux(control.to_float, from_int32.o, as_it_is)),
            multiply.a.eq(unscaled),
            multiply.b.eq(scale),
            scaled.eq(Mux(control.scale, multiply.o, unscaled)),
        ]

        # relu
        rectified = Signal(32, reset_less=True)
        number = Float32(scaled)
        m.d.sync += rectified.eq(scaled)
        with m.If(control.float_relu & number.is_nan()):
            m.d.sync += rectified.eq(NAN)
        with m.Elif((control.float_relu & (number.sign | number.is_zero())) | (control.integer_relu & number.sign)):
            m.d.sync += rectified.eq(0)

        # output
        m.submodules.to_int32 = to_int32 = ToInt32()
        integer = Signal(32)
        m.d.comb += [
            to_int32.i.eq(rectified),
            integer.eq(Mux(control.round, to_int32.o, rectified)),
        ]
        fits = integer[7:].all() | ~integer[7:].any()
        saturated = Cat((~integer[-1]).replicate(7), integer[-1].replicate(25))
        m.d.sync += self.o.eq(Mux(control.narrow & ~fits, saturated, integer))
        if self._bf16:
            m.submodules.to_bf16 = to_bf16 = ToBF16()
            m.d.comb += to_bf16.i.eq(rectified)
            with m.If(control.bf16):
                m.d.sync += self.o.eq(to_bf16.o)
        return m

    def _row_register(self, m: Module, name: str, value: Value) -> Value:
        """The row register of each column, and what of them the column needs that is at this step."""
        registers = [Signal(32, name=f"{name}_{part}", reset_less=True) for part in range(self._parts)]
        for part, register in enumerate(registers):
            here = self.row_part == part if self._parts > 1 else 1
            with m.If(self.clear):
                m.d.sync += register.eq(0)
            with m.Elif(getattr(self, f"{name}_load") & here):
                m.d.sync += register.eq(value)
        if self._parts == 1:
            return registers[0]
        chosen = Signal(32, name=name, reset_less=True)
        m.d.sync += chosen.eq(Array(registers)[getattr(self, f"{name}_part")])
        return chosen
