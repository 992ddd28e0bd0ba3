"""One lane of the vector unit: the arithmetic on some columns of the rows."""

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Member, Out

from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.hw.core.types import has_bits, is_type
from sley.hw.core.vector.control import VECTOR_FLAGS
from sley.hw.core.vector.lane_control import LANE_CONTROL, Conversions, computes_fp32
from sley.hw.fp.binary import Binary
from sley.hw.fp.float32 import FRACTION_BITS, Float32
from sley.hw.fp.from_bf16 import from_bf16
from sley.hw.fp.from_fp16 import from_fp16
from sley.hw.fp.from_int import from_int8
from sley.hw.fp.multiply import Multiply
from sley.hw.fp.sum import Sum
from sley.hw.fp.to_bf16 import ToBF16
from sley.hw.fp.to_fp16 import ToFP16
from sley.hw.fp.to_int import ToInt32


class VectorLane(wiring.Component):
    """The steps of VECTOR: source, op B, bias, scale, relu, output. ``ChainLane`` has more.

    Each step has paths for int32 and for fp32; the flags, constant during an instruction, choose the paths, and
    ``binary_latency`` and the like give the latency of the chosen ones. So none carries delays for another.

    Parameters
    ----------
    types : collection of ElementType
        Of scratchpad rows on the chip; nothing is there for those that it does not have.
    parts : int
        Columns that the lane serves, one after the other.
    more : dict of Member, optional
        Members that a lane made of this one has besides.

    Members
    -------
    flags : In(VECTOR_FLAGS)
        Of the instruction; constant from two cycles before its first operand until its last result.
    a : In(32), a_int8 : In(8), a_bf16 : In(16), a_fp16 : In(16)
        Operand A, registers: a word, an int8 or uint8 or, on chips with them, a bf16 or an fp16; the others are 0.
    b : In(32), b_int8 : In(8), b_bf16 : In(16), b_fp16 : In(16)
        Operand B, likewise; all are 0 if it is not used.
    bias_load, scale_load : In(1)
        Copy the word of A into a row register; done in the next cycle.
    clear : In(1)
        All row registers become 0.
    row_part, bias_part, scale_part : In(range(parts))
        With several columns: the one whose row register is written; the one that reaches the bias, and the scale, in
        the next cycle.
    o : Out(32)
        The result; of an INT8 or UINT8 output the lowest byte counts, of BF16 and FP16 the lower half.

    Latency
    -------
    SOURCE_LATENCY from the registers that take the operands, and that of the steps.

    Throughput
    ----------
    One element per cycle.

    Cost
    ---- ``Binary``, ``Sum``, a multiplier, the conversions, some 300 flip-flops besides those of the fp32 units; with
    several columns two words of memory for each.
    """

    _multiplies_int32 = False
    """Whether there are products of int32."""

    flags: data.View
    a: Signal
    a_int8: Signal
    a_bf16: Signal
    a_fp16: Signal
    b: Signal
    b_int8: Signal
    b_bf16: Signal
    b_fp16: Signal
    bias_load: Signal
    scale_load: Signal
    clear: Signal
    row_part: Signal
    bias_part: Signal
    scale_part: Signal
    o: Signal

    def __init__(self, types: Collection[ElementType], parts: int = 1, more: dict[str, Member] | None = None) -> None:
        self._types = types
        self._bf16, self._fp16, self._uint8 = (
            t in types for t in (ElementType.BF16, ElementType.FP16, ElementType.UINT8)
        )
        self._parts = parts
        indexes = ("row_part", "bias_part", "scale_part") if parts > 1 else ()
        super().__init__(
            {name: In(range(parts)) for name in indexes}
            | {name: In(16) for name in (("a_bf16", "b_bf16") if self._bf16 else ())}
            | {name: In(16) for name in (("a_fp16", "b_fp16") if self._fp16 else ())}
            | (more or {})
            | {
                "flags": In(VECTOR_FLAGS),
                "a": In(32),
                "a_int8": In(8),
                "b": In(32),
                "b_int8": In(8),
                "bias_load": In(1),
                "scale_load": In(1),
                "clear": In(1),
                "o": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        flags = self.flags
        is_fp32 = computes_fp32(flags)
        convert = Conversions(flags, self._types, self._needs_float())
        types = (flags.a_type, flags.b_type)
        a_byte, b_byte = (has_bits(kind, 8, self._types) for kind in types)
        a_uint8, b_uint8 = (is_type(kind, ElementType.UINT8, self._types) for kind in types)
        a_int8 = (flags.a_space == Space.SCRATCHPAD) & a_byte
        b_int8 = (flags.b_space == Space.SCRATCHPAD) & b_byte
        use_b = flags.b_op != BinaryOp.NONE
        control = Signal(LANE_CONTROL, reset_less=True)
        m.d.sync += [
            control.a_convert.eq(is_fp32 & a_int8),
            control.b_convert.eq(is_fp32 & b_int8 & self._reads_b()),
            control.a_unsigned.eq(a_uint8),
            control.b_unsigned.eq(b_uint8),
            control.invert_b.eq((flags.b_op == BinaryOp.MAX) | (is_fp32 & (flags.b_op == BinaryOp.ADD))),
            control.float_b.eq(is_fp32 & use_b),
            control.maximum.eq(flags.b_op == BinaryOp.MAX),
            control.use_bias.eq(flags.bias),
            control.float_bias.eq(is_fp32 & flags.bias),
            control.to_float.eq(convert.to_float),
            control.scale.eq(flags.scale),
            control.float_scale.eq(flags.scale & ~self._integer_product()),
            control.integer_relu.eq(flags.relu & ~convert.is_float),
            control.float_relu.eq(flags.relu & convert.is_float),
            control.round.eq(convert.to_int32),
            control.narrow.eq(convert.to_int8),
            control.unsigned.eq(convert.to_uint8),
            control.bf16.eq(convert.to_bf16),
            control.fp16.eq(convert.to_fp16),
        ]

        with_b, bias, scale = self._first(m, control)

        # bias
        m.submodules.sum = with_bias = Sum()
        m.d.comb += [
            with_bias.float.eq(control.float_bias),
            with_bias.convert.eq(control.to_float),
            with_bias.a.eq(with_b ^ control.float_bias.replicate(32)),
            with_bias.b.eq(bias),
        ]

        # scale
        m.submodules.multiply = multiply = Multiply(integer=self._multiplies_int32)
        m.d.comb += [
            multiply.use.eq(control.float_scale),
            multiply.a.eq(with_bias.o),
            multiply.a_nan.eq(with_bias.nan),
            multiply.b.eq(self._factor(scale, with_bias.o)),
        ]
        scaled = Signal(32)
        product = multiply.o
        if self._multiplies_int32:
            m.d.comb += multiply.integer.eq(self._integer_product())
            product |= multiply.low
        m.d.comb += scaled.eq(product | Mux(control.scale, 0, with_bias.o))

        # relu
        rectified = Signal(32, reset_less=True)
        number = Float32(scaled)
        nan = control.float_relu & (multiply.nan | (~control.scale & with_bias.nan))
        negative = (control.integer_relu | control.float_relu) & number.sign & ~nan
        m.d.sync += rectified.eq(Cat(scaled[:31], number.sign & ~nan))
        with m.If(nan):
            m.d.sync += rectified[:FRACTION_BITS].eq(1 << FRACTION_BITS - 1)
        with m.If((control.float_relu & number.is_zero()) | negative):
            m.d.sync += rectified.eq(0)

        final = self._final(m, rectified)

        # output; only the lowest byte of an int8 or uint8 counts
        m.submodules.to_int32 = to_int32 = ToInt32(for_fp16=self._fp16)
        integer = Signal(32)
        m.d.comb += [
            to_int32.use.eq(control.round),
            to_int32.i.eq(final),
            integer.eq(to_int32.o | Mux(control.round, 0, final)),
        ]
        fits = integer[7:].all() | ~integer[7:].any()
        with m.If(control.narrow & ~fits):
            m.d.sync += self.o.eq(Cat((~integer[-1]).replicate(7), integer[-1], integer[8:]))
        with m.Else():
            m.d.sync += self.o.eq(integer)
        if self._uint8:
            with m.If(control.unsigned & integer[8:].any()):
                m.d.sync += self.o[:8].eq((~integer[-1]).replicate(8))
        if self._fp16:
            m.submodules.to_fp16 = to_fp16 = ToFP16()
            m.d.comb += [to_int32.fp16.eq(control.fp16), to_fp16.i.eq(final), to_fp16.rounded.eq(integer)]
            with m.If(control.fp16):
                m.d.sync += self.o.eq(to_fp16.o)
        if self._bf16:
            m.submodules.to_bf16 = to_bf16 = ToBF16()
            m.d.comb += to_bf16.i.eq(final)
            with m.If(control.bf16):
                m.d.sync += self.o.eq(to_bf16.o)
        return m

    def _needs_float(self) -> Value:
        """Whether a stage behind the bias computes with fp32."""
        return self.flags.scale

    def _integer_product(self) -> Value:
        """Whether the scale is a product of int32."""
        return Const(0, 1)

    def _reads_b(self) -> Value:
        """Whether there is an operand B."""
        return self.flags.b_op != BinaryOp.NONE

    def _first(self, m: Module, control: data.View) -> tuple[Value, Value, Value]:
        """The sources and op B; x behind it, and the operands of bias and scale."""
        # What the comparison of op B subtracts is inverted before it is in a register.
        a, b = Signal(32, name="a", reset_less=True), Signal(32, name="b", reset_less=True)
        m.d.sync += [
            a.eq(self._as_word(m, "a", control.a_convert, control.a_unsigned, Const(0, 1))),
            b.eq(self._as_word(m, "b", control.b_convert, control.b_unsigned, control.invert_b)),
        ]
        m.submodules.binary = binary = Binary()
        m.d.comb += [
            binary.a.eq(a),
            binary.b.eq(b),
            binary.maximum.eq(control.maximum),
            binary.float.eq(control.float_b),
        ]
        bias = self._row_register(m, "bias", a, control.use_bias)
        scale = self._row_register(m, "scale", a, control.scale)
        return binary.integer | binary.larger | binary.sum, bias, scale

    def _factor(self, scale: Value, x: Value) -> Value:
        """What x is multiplied by."""
        return scale

    def _final(self, m: Module, x: Value) -> Value:
        """x behind the stages that follow relu."""
        return x

    def _as_word(self, m: Module, name: str, convert: Value, unsigned: Value, invert: Value) -> Value:
        """An operand as the 32 bits that its type says, or their inverse: of all that it can be all but one are 0."""
        int8 = getattr(self, f"{name}_int8")
        above = int8[-1] & ~unsigned if self._uint8 else int8[-1]
        word = getattr(self, name) | Mux(convert, 0, Cat(int8, above.replicate(24)))
        if self._bf16:
            word |= from_bf16(getattr(self, f"{name}_bf16"))
        if self._fp16:
            word |= from_fp16(m, f"{name}_fp16", getattr(self, f"{name}_fp16"))
        # The conversion of an int8 comes last, so it is merged last.
        return word ^ invert.replicate(32) ^ from_int8(m, name, int8, convert, unsigned if self._uint8 else None)

    def _row_register(self, m: Module, name: str, value: Value, use: Value) -> Value:
        """What the column at this step needs of the row register of each; 0 if it is not used.

        With several columns a memory holds them. It is not cleared: flags tell which words are.
        """
        register = Signal(32, name=name, reset_less=True)
        load, parts = Signal(name=f"{name}_written_next"), self._parts
        m.d.sync += load.eq(getattr(self, f"{name}_load") & ~self.clear)
        if parts == 1:
            stored = Signal(32, name=f"{name}_held", reset_less=True)
            with m.If(load):
                m.d.sync += stored.eq(value)
            with m.If(self.clear):
                m.d.sync += stored.eq(0)
            m.d.sync += register.eq(stored)
            with m.If(~use):
                m.d.sync += register.eq(0)
            return register
        part, row_part = getattr(self, f"{name}_part"), Signal(range(parts), name=f"{name}_row_part", reset_less=True)
        m.d.sync += row_part.eq(self.row_part)
        m.submodules[f"{name}_words"] = words = Memory(shape=32, depth=parts, init=[])
        write, read = words.write_port(), words.read_port(domain="comb")
        written = Signal(parts, name=f"{name}_written")
        m.d.comb += [write.en.eq(load), write.addr.eq(row_part), write.data.eq(value), read.addr.eq(part)]
        with m.If(self.clear):
            m.d.sync += written.eq(0)
        with m.Elif(load):
            m.d.sync += written.bit_select(row_part, 1).eq(1)
        m.d.sync += register.eq(read.data)
        with m.If(~(use & written.bit_select(part, 1))):
            m.d.sync += register.eq(0)
        return register
