"""One lane of the vector unit on a chip with chains: all stages of one, on one column."""

from collections.abc import Collection

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from sley.abi.types import ElementType
from sley.abi.vector.operations import JOIN
from sley.hw.core.vector.control import CONTROL, LATE_STAGES, STAGES, inverted, is_code
from sley.hw.core.vector.lane import VectorLane
from sley.hw.core.vector.lane_control import computes_fp32
from sley.hw.core.vector.partials import SLOTS, LanePartials
from sley.hw.core.vector.row_registers import ROWS, LaneRows, RowSource
from sley.hw.core.vector.tail import AnyFunction, LaneTail
from sley.hw.fp.binary import Binary
from sley.hw.fp.logic import Logic

_MEMBERS = {
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


class ChainLane(VectorLane):
    """The steps of VECTOR, and the stages of a chain in their place.

    Parameters
    ----------
    types : collection of ElementType
        Of scratchpad rows on the chip; nothing is there for those that it does not have.
    functions : collection of AnyFunction
        Those that chains can have.

    Members
    -------
    flags, a, b, ... : as of ``VectorLane``
        ``flags`` say of the first stages what those of a VECTOR without a chain would.
    control : In(CONTROL), needs_float : In(1)
        what the stages do. ``flags`` then say of the first stages what those of a VECTOR without a chain
        would. Constant as ``flags`` are.
    c : In(32), c_int8 : In(8), c_bf16 : In(16), c_fp16 : In(16)
        operand C, as A.
    a_word, b_word, c_word : Out(32)
        the operands as words, SOURCE_LATENCY behind their registers.
    late0, late1 : In(32)
        late operands, in the cycle in which their stage takes them.
    iota_negative : In(1)
        the iota is negative, in the cycle of x at the condition.
    splat : In(32).array(stages)
        the splat of each stage with a uniform operand, else 0.
    capture : In(1), row_load : In(ROWS), row_source : In(2)
        keep x behind all stages, or what a fold has given (sources 1, 2); which row register takes in the
        next cycle what is kept, or the word of A (0).
    read, slot, fresh, write, write_slot : In
        as of ``LanePartials``.
    fold, second : In(1)
        as of ``LaneTail``.

    Latency
    -------
    That of ``VectorLane`` and of ``LaneTail``.

    Throughput
    ----------
    One element per cycle.

    Cost
    ----
    That of ``VectorLane``, ``Logic``, ``LaneRows``, ``LanePartials`` and ``LaneTail``; registers for three words.
    """

    _multiplies_int32 = True

    control: data.View
    needs_float: Signal
    c: Signal
    c_int8: Signal
    c_bf16: Signal
    c_fp16: Signal
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

    def __init__(self, types: Collection[ElementType], functions: Collection[AnyFunction]) -> None:
        self._functions = functions
        wide = {"c_bf16": ElementType.BF16, "c_fp16": ElementType.FP16}
        super().__init__(types, more=_MEMBERS | {name: In(16) for name, t in wide.items() if t in types})

    def _needs_float(self) -> Value:
        return self.needs_float

    def _integer_product(self) -> Value:
        return self.control.integer_product

    def _reads_b(self) -> Value:
        return Const(1, 1)

    def _row_registers(self, m: Module) -> tuple[LaneRows, dict[str, Value]]:
        """The row registers, and the uniform operands of the stages, by stage."""
        m.submodules.rows = rows = LaneRows()
        m.d.sync += rows.load.eq(Mux(self.clear, 0, self.row_load))
        m.d.comb += [rows.clear.eq(self.clear), rows.select.eq(self.control.select)]
        m.d.comb += [mine.eq(splat) for mine, splat in zip(rows.splat, self.splat, strict=True)]
        return rows, dict(zip(STAGES, rows.o, strict=True))

    def _late(self, stage: str) -> Value:
        """The late operand of a stage; 0 if it has none."""
        use = self.control.late_use
        index = LATE_STAGES.index(stage)
        return (self.late0 & use[0][index].replicate(32)) | (self.late1 & use[1][index].replicate(32))

    def _first(self, m: Module, control: data.View) -> tuple[Value, Value, Value]:
        first, is_fp32 = self.control.first, computes_fp32(self.flags)
        c_convert = Signal(reset_less=True)
        m.d.sync += c_convert.eq(is_fp32 & self.control.c_int8)
        converts = {
            "a": (control.a_convert, control.a_unsigned),
            "b": (control.b_convert, control.b_unsigned),
            "c": (c_convert, self.control.c_unsigned),
        }
        words = {name: self._as_word(m, name, *convert, Const(0, 1)) for name, convert in converts.items()}
        self._rows, uniform = self._row_registers(m)
        self._uniform = uniform
        for name, word in words.items():
            m.d.sync += getattr(self, f"{name}_word").eq(word)
        a, b = Signal(32, name="a", reset_less=True), Signal(32, name="b", reset_less=True)
        y = Mux(self.control.y_is_b, words["b"], uniform["binary"])
        m.d.sync += [a.eq(inverted(words["a"], first.x)), b.eq(inverted(y, first.y))]
        m.submodules.binary = binary = Binary()
        m.submodules.logic = logic = Logic()
        m.d.comb += [
            binary.a.eq(a),
            binary.b.eq(b),
            binary.maximum.eq(first.maximum),
            binary.minimum.eq(first.minimum),
            binary.float.eq(first.float),
            binary.carry.eq(first.carry),
            logic.op.eq(self.control.logic_op),
            logic.float.eq(is_fp32),
            logic.x.eq(a),
            logic.y.eq(b),
        ]
        sums = binary.integer | binary.larger | binary.sum
        scale = uniform["multiply"] | self._late("multiply")
        return Mux(self.control.logic, logic.o, sums), uniform["add"], scale

    def _factor(self, scale: Value, x: Value) -> Value:
        return Mux(self.control.multiply_self, x, scale)

    def _final(self, m: Module, x: Value) -> Value:
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
        m.d.comb += [getattr(tail, name).eq(self._uniform[name]) for name in ("other", "multiply2", "binary2")]
        m.d.comb += [
            getattr(partials, name).eq(getattr(self, name)) for name in ("read", "slot", "fresh", "write", "write_slot")
        ]
        from_a, kept = Signal(reset_less=True), Signal(32, reset_less=True)
        m.d.sync += from_a.eq(self.row_source == RowSource.A)
        with m.If(self.capture):
            m.d.sync += kept.eq(Mux(self.row_source == RowSource.FOLD, tail.o, final))
        m.d.comb += self._rows.i.eq(Mux(from_a, self.a_word, kept))
        return final
