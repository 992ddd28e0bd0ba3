"""What a chain needs besides the lanes: late operands, the iota, and the events of the stages behind relu."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.vector.chains import Late
from sley.abi.vector.operations import JOIN
from sley.hw.core.params import params_layout
from sley.hw.core.vector.control import CONTROL, LATE_STAGES, is_code
from sley.hw.core.vector.events import later
from sley.hw.core.vector.late import LateOperand
from sley.hw.core.vector.tail import SELECT_LATENCY, binary2_latency, function_latency, multiply2_latency

LANE_OFFSET_BITS = 22
"""Of what the iota of the last lane differs from that of lane 0."""


class ChainStages(wiring.Component):
    """Late operands of the lanes, their iota, and when x leaves the last stage.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    control : In(CONTROL), params : In(params_layout)
        Of the instruction: constant from the cycle behind ``start`` on; taken with ``start``.
    start, abort : In(1)
        An instruction begins, and no row is here; what is on its way is forgotten.
    at_word, before_multiply, at_relu : In(1)
        A row is one cycle before its words, two before its multiplication, one before relu.
    a, b, c : In(32 * array)
        The operands as words, in the cycle behind ``at_word``.
    late0, late1 : Out(32 * array)
        Late operands, in the cycle in which their stage takes them.
    iota_negative : Out(array)
        Lane by lane, in the cycle of x at the condition.
    at_join : Out(1)
        A row is one cycle before the adder that joins it with a partial result.
    at_final : Out(1)
        A row is one cycle before x behind all stages, of which a join is none.

    Latency
    -------
    From ``at_relu`` to ``at_final``: 1 cycle, and with a tail those of its stages.

    Cost
    ----
    Two ``LateOperand``; an adder, and one for the sign of each lane; some 40 flip-flops.
    """

    control: data.View
    params: data.View
    start: Signal
    abort: Signal
    at_word: Signal
    before_multiply: Signal
    at_relu: Signal
    a: Signal
    b: Signal
    c: Signal
    late0: Signal
    late1: Signal
    iota_negative: Signal
    at_join: Signal
    at_final: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        width = 32 * config.array
        events = ("start", "abort", "at_word", "before_multiply", "at_relu")
        super().__init__(
            {
                "control": In(CONTROL),
                "params": In(params_layout(Unit.VECTOR, config)),
                **{name: In(1) for name in events},
                **{name: In(width) for name in ("a", "b", "c")},
                "late0": Out(width),
                "late1": Out(width),
                "iota_negative": Out(config.array),
                "at_join": Out(1),
                "at_final": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        control, always = self.control, Const(1, 1)
        short, tail = ~control.tail, control.tail

        # Events of the stages behind relu
        at_select = later(m, "select", self.at_relu, {1: always}, self.abort)
        function = function_latency(control, self._config.vector_functions)
        to_multiply2 = {0: short, **{SELECT_LATENCY + n: tail & chosen for n, chosen in function.items()}}
        at_multiply2 = later(m, "multiply2", at_select, to_multiply2, self.abort)
        at_binary2 = later(m, "binary2", at_multiply2, multiply2_latency(control), self.abort)
        joins = is_code(control.reduce, JOIN)
        to_final = {0: short | joins, **{n: tail & ~joins & take for n, take in binary2_latency(control).items()}}
        m.d.comb += self.at_join.eq(at_binary2 & joins)
        m.d.comb += self.at_final.eq(later(m, "final", at_binary2, to_final, self.abort))

        # Late operands are asked for one cycle before the event of their stage
        before_multiply2 = later(m, "before_multiply2", at_select, function, self.abort)
        before = {
            "multiply": self.before_multiply,
            "select": self.at_relu,
            "multiply2": before_multiply2,
            "binary2": later(m, "before_binary2", before_multiply2, multiply2_latency(control), self.abort),
        }
        exchange = Signal.like(self.params.exchange, name="exchange", reset_less=True)
        iota_row = Signal.like(self.params.iota_row, name="iota_row", reset_less=True)
        with m.If(self.start):
            m.d.sync += [exchange.eq(self.params.exchange), iota_row.eq(self.params.iota_row)]
        words = later(m, "words", self.at_word, {1: always}, self.abort)
        for number, port in enumerate((self.late0, self.late1)):
            m.submodules[f"late{number}"] = late = LateOperand(self._config)
            source = control.late_source[number]
            uses = [control.late_use[number][index] & before[stage] for index, stage in enumerate(LATE_STAGES)]
            m.d.comb += [
                late.start.eq(self.start),
                late.write.eq(words),
                late.i.eq(Mux(source == Late.A, self.a, Mux(source == Late.B, self.b, self.c))),
                late.read.eq(Cat(uses).any()),
                late.lanes.eq(control.late_lanes[number]),
                late.exchange.eq(exchange),
                port.eq(late.o),
            ]

        # Iota
        iota = Signal(signed(32), reset_less=True)
        with m.If(self.start):
            m.d.sync += iota.eq(self.params.iota_base)
        with m.Elif(at_select):
            m.d.sync += iota.eq(iota + iota_row)
        for lane in range(self._config.array):
            offset = Signal(signed(LANE_OFFSET_BITS), name=f"offset_{lane}", reset_less=True)
            value: Value = iota + offset
            m.d.sync += self.iota_negative[lane].eq(value[31])
            with m.If(self.start):
                m.d.sync += offset.eq(self.params.iota_lane * lane)
        return m
