"""One lane of the vector unit: the arithmetic on some columns of the rows."""

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sley.abi.instructions import Space
from sley.abi.types import WORD_TYPES, ElementType
from sley.abi.vector.operations import BinaryOp
from sley.hw.core.types import is_type
from sley.hw.core.vector.control import CONTROL, LATE_STAGES, STAGES, VECTOR_FLAGS, inverted, is_code
from sley.hw.core.vector.events import Choice
from sley.hw.core.vector.partials import JOIN, SLOTS, LanePartials
from sley.hw.core.vector.row_registers import ROWS, LaneRows, RowSource
from sley.hw.core.vector.tail import AnyFunction, LaneTail
from sley.hw.fp.binary import Binary
from sley.hw.fp.float32 import FRACTION_BITS, Float32
from sley.hw.fp.from_bf16 import from_bf16
from sley.hw.fp.from_int import from_int8
from sley.hw.fp.logic import Logic
from sley.hw.fp.multiply import Multiply
from sley.hw.fp.sum import Sum
from sley.hw.fp.to_bf16 import ToBF16
from sley.hw.fp.to_int import ToInt32

SOURCE_LATENCY = 1
"""From the registers that take the operands to those of op B."""

_CONTROL = data.StructLayout(
    {
        "a_convert": 1,  # A is an int8 that becomes fp32
        "b_convert": 1,
        "c_convert": 1,
        "invert_b": 1,
        "float_b": 1,  # op B is one of fp32
        "maximum": 1,  # op B is a maximum
        "use_bias": 1,
        "float_bias": 1,  # add the bias as fp32
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
    """The flags' conversions between the formats, on a chip with these operand types.

    ``needs_float``: a stage behind the multiplication computes with fp32.
    """

    def __init__(self, flags: data.View, types: Collection[ElementType], needs_float: Value) -> None:
        outputs = {*WORD_TYPES, *types}
        self.to_int8, self.to_bf16, to_fp32, to_int32 = (
            is_type(flags.out, t, outputs)
            for t in (ElementType.INT8, ElementType.BF16, ElementType.FP32, ElementType.INT32)
        )
        is_fp32 = computes_fp32(flags)
        self.to_float = ~is_fp32 & (flags.scale | self.to_bf16 | to_fp32 | needs_float)
        self.is_float = is_fp32 | self.to_float  # from the scale on
        self.to_int32 = self.is_float & (to_int32 | self.to_int8)


def computes_fp32(flags: data.View) -> Value:
    """Whether sources and sums are fp32."""
    return is_type(flags.dtype, ElementType.FP32, WORD_TYPES)


def binary_latency(flags: data.View) -> Choice:
    """Op B: from its cycle, behind the registers of the converted operands, to that of the bias."""
    is_sum, is_maximum = flags.b_op == BinaryOp.ADD, flags.b_op == BinaryOp.MAX
    is_float = is_sum & computes_fp32(flags)
    return {
        Binary.INTEGER_LATENCY: ~is_maximum & ~is_float,
        Binary.MAXIMUM_LATENCY: is_maximum,
        Binary.SUM_LATENCY: is_float,
    }


def is_float(flags: data.View, types: Collection[ElementType], needs_float: Value) -> Value:
    """Whether x is fp32 behind the bias."""
    return _Conversions(flags, types, needs_float).is_float


def bias_latency(flags: data.View, types: Collection[ElementType], needs_float: Value) -> Choice:
    """From the cycle of the bias to that of the scale."""
    is_float, to_float = computes_fp32(flags) & flags.bias, _Conversions(flags, types, needs_float).to_float
    return {
        Sum.INTEGER_LATENCY: ~is_float & ~to_float,
        Sum.CONVERT_LATENCY: to_float,
        Sum.FLOAT_LATENCY: is_float,
    }


def scale_latency(flags: data.View) -> Choice:
    """From the cycle of the scale to that of relu."""
    return {0: ~flags.scale, Multiply.LATENCY: flags.scale}


RELU_LATENCY = 1


def output_latency(flags: data.View, types: Collection[ElementType], needs_float: Value) -> Choice:
    """From the cycle of x behind all stages to that of the result in ``o``."""
    convert = _Conversions(flags, types, needs_float)
    return {
        1: ~convert.to_bf16 & ~convert.to_int32,
        1 + ToBF16.LATENCY: convert.to_bf16,
        1 + ToInt32.LATENCY: convert.to_int32,
    }


_CHAIN_MEMBERS = {
    "control": In(CONTROL),
    "c": In(32),
    "c_int8": In(8),
    **{f"{name}_word": Out(32) for name in "abc"},
    "late0": In(32),
    "late1": In(32),
    "splat": In(32).array(len(STAGES)),
    "row_load": In(ROWS),
    "row_source": In(2),
    "slot": In(range(SLOTS)),
    "write_slot": In(range(SLOTS)),
    **{name: In(1) for name in ("needs_float", "iota_negative", "read", "fresh", "fold", "second", "write", "capture")},
}
"""Members of a lane with chains."""


class VectorLane(wiring.Component):
    """The steps of VECTOR: source, op B, bias, scale, relu, output; with chains all stages of one.

    Each step has paths for int32 and for fp32; the flags, constant during an instruction, choose the paths, and
    ``binary_latency`` and the like give the latency of the chosen ones. So none carries delays for another.

    Parameters
    ----------
    types : collection of ElementType
        Operand types of the chip; without bf16 none of its logic exists.
    parts : int
        Columns that the lane serves, one after the other.
    chains : bool
        Whether the chip has chains; ``parts`` is then 1.
    functions : collection of AnyFunction
        Those that chains can have.

    Members
    -------
    flags : In(VECTOR_FLAGS)
        Of the instruction; constant from two cycles before its first operand until its last result.
    a : In(32), a_int8 : In(8), a_bf16 : In(16)
        Operand A, registers: a word, an int8 or, with bf16, a bf16; the others are 0.
    b : In(32), b_int8 : In(8), b_bf16 : In(16)
        Operand B, likewise; all are 0 if it is not used.
    bias_load, scale_load : In(1)
        Copy the word of A into a row register; done in the next cycle.
    clear : In(1)
        All row registers become 0.
    row_part, bias_part, scale_part : In(range(parts))
        With several columns: the one whose row register is written; the one that reaches the bias, and the scale, in
        the next cycle.
    o : Out(32)
        The result; an INT8 output sign-extended, a BF16 output in the lower half.
    control : In(CONTROL), needs_float : In(1)
        With chains: what the stages do. ``flags`` then say of the first stages what those of a VECTOR without a chain
        would. Constant as ``flags`` are.
    c : In(32), c_int8 : In(8), c_bf16 : In(16)
        With chains: operand C, as A.
    a_word, b_word, c_word : Out(32)
        With chains: the operands as words, SOURCE_LATENCY behind their registers.
    late0, late1 : In(32)
        With chains: late operands, in the cycle in which their stage takes them.
    iota_negative : In(1)
        With chains: the iota is negative, in the cycle of x at the condition.
    splat : In(32).array(stages)
        With chains: the splat of each stage with a uniform operand, else 0.
    capture : In(1), row_load : In(ROWS), row_source : In(2)
        With chains: keep x behind all stages, or what a fold has given (sources 1, 2); which row register takes in the
        next cycle what is kept, or the word of A (0).
    read, slot, fresh, write, write_slot : In
        With chains: as of ``LanePartials``.
    fold, second : In(1)
        With chains: as of ``LaneTail``.

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

    flags: data.View
    a: Signal
    a_int8: Signal
    a_bf16: Signal
    b: Signal
    b_int8: Signal
    b_bf16: Signal
    bias_load: Signal
    scale_load: Signal
    clear: Signal
    row_part: Signal
    bias_part: Signal
    scale_part: Signal
    o: Signal

    control: data.View
    needs_float: Signal
    c: Signal
    c_int8: Signal
    c_bf16: Signal
    a_word: Signal
    b_word: Signal
    c_word: Signal
    late0: Signal
    late1: Signal
    iota_negative: Signal
    splat: list[Signal]
    capture: Signal
    row_load: Signal
    row_source: Signal
    read: Signal
    slot: Signal
    fresh: Signal
    fold: Signal
    second: Signal
    write: Signal
    write_slot: Signal

    def __init__(
        self,
        types: Collection[ElementType],
        parts: int = 1,
        chains: bool = False,
        functions: Collection[AnyFunction] = (),
    ) -> None:
        self._chains, self._functions = chains, functions
        self._types = types
        self._bf16 = ElementType.BF16 in types
        self._parts = parts
        indexes = ("row_part", "bias_part", "scale_part") if parts > 1 else ()
        names = ("a_bf16", "b_bf16", "c_bf16") if chains else ("a_bf16", "b_bf16")
        super().__init__(
            {name: In(range(parts)) for name in indexes}
            | {name: In(16) for name in (names if self._bf16 else ())}
            | (_CHAIN_MEMBERS if chains else {})
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
        convert = _Conversions(flags, self._types, self.needs_float if self._chains else Const(0, 1))
        a_bf16, b_bf16 = (is_type(kind, ElementType.BF16, self._types) for kind in (flags.a_type, flags.b_type))
        a_int8 = (flags.a_space == Space.SCRATCHPAD) & ~a_bf16
        b_int8 = (flags.b_space == Space.SCRATCHPAD) & ~b_bf16
        use_b = flags.b_op != BinaryOp.NONE
        control = Signal(_CONTROL, reset_less=True)
        m.d.sync += [
            control.a_convert.eq(is_fp32 & a_int8),
            control.b_convert.eq(is_fp32 & b_int8 & (use_b | self._chains)),
            control.c_convert.eq((is_fp32 & self.control.c_int8) if self._chains else 0),
            control.invert_b.eq((flags.b_op == BinaryOp.MAX) | (is_fp32 & (flags.b_op == BinaryOp.ADD))),
            control.float_b.eq(is_fp32 & use_b),
            control.maximum.eq(flags.b_op == BinaryOp.MAX),
            control.use_bias.eq(flags.bias),
            control.float_bias.eq(is_fp32 & flags.bias),
            control.to_float.eq(convert.to_float),
            control.scale.eq(flags.scale),
            control.integer_relu.eq(flags.relu & ~convert.is_float),
            control.float_relu.eq(flags.relu & convert.is_float),
            control.round.eq(convert.to_int32),
            control.narrow.eq(convert.to_int8),
            control.bf16.eq(convert.to_bf16),
        ]

        # Sources; what the comparison of op B subtracts is inverted before it is in a register
        a = Signal(32, reset_less=True)
        b = Signal(32, reset_less=True)
        uniform: dict[str, Value] = {}
        m.submodules.binary = binary = Binary()
        m.d.comb += [binary.a.eq(a), binary.b.eq(b)]
        with_b: Value = binary.integer | binary.larger | binary.sum
        if self._chains:
            uniform = self._row_registers(m)
            bias, scale = uniform["add"], uniform["multiply"] | self._late("multiply")
            with_b = self._first(m, binary, a, b, control, uniform["binary"], with_b)
        else:
            m.d.sync += [
                a.eq(self._as_word(m, "a", control.a_convert, Const(0, 1))),
                b.eq(self._as_word(m, "b", control.b_convert, control.invert_b)),
            ]
            bias = self._row_register(m, "bias", a, control.use_bias)
            scale = self._row_register(m, "scale", a, control.scale)
            m.d.comb += [binary.maximum.eq(control.maximum), binary.float.eq(control.float_b)]

        # bias
        m.submodules.sum = with_bias = Sum()
        m.d.comb += [
            with_bias.float.eq(control.float_bias),
            with_bias.convert.eq(control.to_float),
            with_bias.a.eq(with_b ^ control.float_bias.replicate(32)),
            with_bias.b.eq(bias),
        ]

        # scale
        m.submodules.multiply = multiply = Multiply()
        m.d.comb += [
            multiply.use.eq(control.scale),
            multiply.a.eq(with_bias.o),
            multiply.a_nan.eq(with_bias.nan),
            multiply.b.eq(Mux(self.control.multiply_self, with_bias.o, scale) if self._chains else scale),
        ]
        scaled = Signal(32)
        m.d.comb += scaled.eq(multiply.o | Mux(control.scale, 0, with_bias.o))

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

        final = self._final(m, rectified, uniform) if self._chains else rectified

        # output; only the lowest byte of an int8 counts
        m.submodules.to_int32 = to_int32 = ToInt32()
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
        if self._bf16:
            m.submodules.to_bf16 = to_bf16 = ToBF16()
            m.d.comb += to_bf16.i.eq(final)
            with m.If(control.bf16):
                m.d.sync += self.o.eq(to_bf16.o)
        return m

    def _row_registers(self, m: Module) -> dict[str, Value]:
        """The uniform operands of the stages, by stage."""
        m.submodules.rows = rows = LaneRows()
        m.d.sync += rows.load.eq(Mux(self.clear, 0, self.row_load))
        m.d.comb += [rows.clear.eq(self.clear), rows.select.eq(self.control.select)]
        m.d.comb += [mine.eq(splat) for mine, splat in zip(rows.splat, self.splat, strict=True)]
        return dict(zip(STAGES, rows.o, strict=True))

    def _late(self, stage: str) -> Value:
        """The late operand of a stage; 0 if it has none."""
        use = self.control.late_use
        index = LATE_STAGES.index(stage)
        return (self.late0 & use[0][index].replicate(32)) | (self.late1 & use[1][index].replicate(32))

    def _first(
        self, m: Module, binary: Binary, a: Signal, b: Signal, control: data.View, uniform: Value, sums: Value
    ) -> Value:
        """The first stage of a chain; ``sums`` is what its adder gives."""
        first = self.control.first
        words = {name: self._as_word(m, name, control[f"{name}_convert"], Const(0, 1)) for name in "abc"}
        for name, word in words.items():
            m.d.sync += getattr(self, f"{name}_word").eq(word)
        y = Mux(self.control.y_is_b, words["b"], uniform)
        m.d.sync += [a.eq(inverted(words["a"], first.x)), b.eq(inverted(y, first.y))]
        m.submodules.logic = logic = Logic()
        m.d.comb += [
            binary.maximum.eq(first.maximum),
            binary.minimum.eq(first.minimum),
            binary.float.eq(first.float),
            binary.carry.eq(first.carry),
            logic.op.eq(self.control.logic_op),
            logic.float.eq(computes_fp32(self.flags)),
            logic.x.eq(a),
            logic.y.eq(b),
        ]
        return Mux(self.control.logic, logic.o, sums)

    def _final(self, m: Module, x: Value, uniform: dict[str, Value]) -> Value:
        """x behind all stages of a chain, on its way to the reduction, too."""
        m.submodules.tail = tail = LaneTail(self._functions)
        m.submodules.partials = partials = LanePartials()
        final = Signal(32)
        joins = is_code(self.control.reduce, JOIN)
        m.d.comb += [
            tail.control.eq(self.control),
            tail.i.eq(x),
            tail.partial.eq(partials.o),
            final.eq(Mux(joins, tail.x, Mux(self.control.tail, tail.o, x))),
            partials.i.eq(tail.o),
            partials.reduce.eq(self.control.reduce),
            partials.is_float.eq(self.control.is_float),
        ]
        names = ("iota_negative", "late0", "late1", "fold", "second")
        m.d.comb += [getattr(tail, name).eq(getattr(self, name)) for name in names]
        m.d.comb += [getattr(tail, name).eq(uniform[name]) for name in ("other", "multiply2", "binary2")]
        m.d.comb += [
            getattr(partials, name).eq(getattr(self, name)) for name in ("read", "slot", "fresh", "write", "write_slot")
        ]
        from_a, kept = Signal(reset_less=True), Signal(32, reset_less=True)
        m.d.sync += from_a.eq(self.row_source == RowSource.A)
        with m.If(self.capture):
            m.d.sync += kept.eq(Mux(self.row_source == RowSource.FOLD, tail.o, final))
        m.d.comb += m.submodules.rows.i.eq(Mux(from_a, self.a_word, kept))
        return final

    def _as_word(self, m: Module, name: str, convert: Value, invert: Value) -> Value:
        """An operand as the 32 bits that its type says, or their inverse: of all that it can be all but one are 0."""
        int8 = getattr(self, f"{name}_int8")
        word = getattr(self, name) | Mux(convert, 0, Cat(int8, int8[-1].replicate(24)))
        if self._bf16:
            word |= from_bf16(getattr(self, f"{name}_bf16"))
        # The conversion of an int8 comes last, so it is merged last.
        return word ^ invert.replicate(32) ^ from_int8(m, name, int8, convert)

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
