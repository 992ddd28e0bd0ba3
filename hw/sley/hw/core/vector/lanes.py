# amaranth: UnusedElaboratable=no
"""The way of the rows from the memories through the lanes of the vector unit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from sley.abi.config import ChipConfig
from sley.abi.instructions import FLAGS_BITS, VectorRow
from sley.abi.timing import SRAM_READ
from sley.hw.core.params import UnitParams
from sley.hw.core.vector.chain_lane import ChainLane
from sley.hw.core.vector.control import VECTOR_FLAGS, VROW_FLAGS
from sley.hw.core.vector.decoded import Decoded
from sley.hw.core.vector.events import later
from sley.hw.core.vector.lane import VectorLane
from sley.hw.core.vector.lane_control import (
    RELU_LATENCY,
    SOURCE_LATENCY,
    bias_latency,
    binary_latency,
    output_latency,
    scale_latency,
)
from sley.hw.core.vector.reads import VectorReads
from sley.hw.core.vector.source import Source
from sley.hw.core.vector.writes import output_rows
from sley.hw.elaboration.shared import shared
from sley.hw.stream.count import step

CURRENT = data.StructLayout({"flags": FLAGS_BITS, "vrow": 1, "splat": 32})
"""Of the command that began last: its flags, whether it is a VROW, and the value that a VROW fills a register with, or
0."""


class Lanes:
    """The lanes, what they read, and the events that follow rows through them.

    A part of a row passes every place one cycle before its data: the lanes' registers, where that of a VROW ends, bias,
    scale, relu, and the end. ``current`` is constant while rows are inside.

    Attributes: ``row_arrived``: a row has come to its end; ``result``: what it is then. ``empty``: no row is between
    its reads and its end.
    """

    def __init__(
        self,
        m: Module,
        config: ChipConfig,
        current: data.View,
        reads: VectorReads,
        abort: Value,
        clear: Value,
        decoded: Decoded | None,
        params: UnitParams,
        platform: object,
    ) -> None:
        self._config, self._abort = config, abort
        types, parts = config.vector_types, config.row_parts
        vector, vrow = data.View(VECTOR_FLAGS, current.flags), data.View(VROW_FLAGS, current.flags)
        flags = decoded.flags if decoded else vector
        needs_float = decoded.needs_float if decoded else vector.scale
        taken = later(m, "taken", reads.advance, {SRAM_READ: Const(1, 1)}, abort)
        first = binary_latency(flags)
        to_scale, to_end = bias_latency(flags, types, needs_float), output_latency(flags, types, needs_float)
        at_bias = later(m, "bias", taken & ~current.vrow, first, abort, SOURCE_LATENCY)
        at_scale = later(m, "scale", at_bias, to_scale, abort)
        at_relu = later(m, "relu", at_scale, scale_latency(flags), abort)
        if decoded:
            at_final: Value = decoded.stages.at_final
            before = {cycles - 1: chosen for cycles, chosen in to_scale.items()}
            m.d.comb += [
                decoded.stages.at_word.eq(later(m, "word", taken & ~current.vrow, {1: Const(1, 1)}, abort)),
                decoded.stages.before_multiply.eq(later(m, "before_multiply", at_bias, before, abort)),
                decoded.stages.at_relu.eq(at_relu),
                decoded.reductions.join.eq(decoded.stages.at_join),
                decoded.reductions.last.eq(later(m, "last", at_final, {1: Const(1, 1)}, abort)),
            ]
            to_final = to_end
        else:
            at_final, to_final = at_relu, {RELU_LATENCY + cycles: chosen for cycles, chosen in to_end.items()}
        ends = later(m, "end", at_final, to_final, abort)
        arrived = Signal()
        m.d.sync += arrived.eq(Mux(current.vrow, taken, ends) & ~abort)

        # Part of a row: that is at bias or scale, that arrives
        arrived_part, bias_part, scale_part = (
            self._part(m, name, event) for name, event in (("arrived", arrived), ("bias", at_bias), ("scale", at_scale))
        )
        self.row_arrived = Signal(name="row_arrived")
        m.d.comb += self.row_arrived.eq(arrived & (arrived_part == parts - 1))
        self.empty = self._count(m, reads.row_advance)

        lanes: list[VectorLane] = [
            ChainLane(types, config.vector_functions) if decoded else VectorLane(types, parts)
            for _ in range(config.vector_lanes)
        ]
        sources = self._sources(m, reads, vector, decoded)
        loads = arrived & current.vrow
        for index, lane in enumerate(lanes):
            m.submodules[f"lane_{index}"] = shared(lane, "sley_vector_lane", platform)
            for name, source in sources.items():
                for what, value in source.lane(index).items():
                    word = value | current.splat if (name, what) == ("a", "word") else value
                    m.d.comb += getattr(lane, name if what == "word" else f"{name}_{what}").eq(word)
            m.d.comb += [
                lane.flags.eq(flags),
                lane.bias_load.eq(loads & (vrow.row == VectorRow.BIAS)),
                lane.scale_load.eq(loads & (vrow.row == VectorRow.SCALE)),
                lane.clear.eq(clear),
            ]
            if parts > 1:
                m.d.comb += [
                    lane.row_part.eq(arrived_part),
                    lane.bias_part.eq(bias_part),
                    lane.scale_part.eq(scale_part),
                ]
        if decoded:
            decoded.connect_lanes(m, lanes, loads, vrow.row, params)
        self.result: Value = Cat(lane.o for lane in lanes)
        if parts > 1:
            earlier = Signal(32 * config.array - len(self.result), reset_less=True)  # parts of this row
            self.result = Cat(earlier, self.result)
            with m.If(arrived):
                m.d.sync += earlier.eq(self.result[-len(earlier) :])

    def _sources(self, m: Module, reads: VectorReads, vector: data.View, decoded: Decoded | None) -> dict[str, Source]:
        """What the lanes read of A, of B and, with chains, of C."""
        config, part, abort = self._config, reads.part, self._abort
        arriving = {}
        for name, granted in (("a", reads.a_granted | (reads.advance & reads.splat)), ("b", reads.b_granted)):
            arriving[name] = Signal(SRAM_READ, name=f"{name}_arriving")
            m.d.sync += arriving[name].eq(Mux(abort, 0, Cat(granted, arriving[name])))
        sources = {
            "a": Source(
                *(m, "a", config, part, arriving["a"][-1], Const(0, 1)),
                *(reads.scratchpad_read_a, reads.accumulator_read_a),
                *(reads.a_accumulator & ~reads.splat, ~reads.a_accumulator, vector.a_half, vector.a_type),
            ),
            "b": Source(
                *(m, "b", config, part, arriving["b"][-1], ~reads.uses_b),
                *(reads.scratchpad_read_b, reads.accumulator_read_b),
                *(reads.b_accumulator, ~reads.b_accumulator, vector.b_half, vector.b_type),
            ),
        }
        if decoded:
            c_arriving = later(m, "c_arriving", reads.c_granted, {SRAM_READ: Const(1, 1)}, abort)
            sources["c"] = Source(
                *(m, "c", config, part, c_arriving, ~reads.uses_c),
                *(reads.scratchpad_read_b, reads.accumulator_read_b),
                *(~reads.b_accumulator, reads.b_accumulator, decoded.c_half, decoded.c_type),
            )
        return sources

    def _count(self, m: Module, enters: Value) -> Signal:
        """Whether no row is inside, a register."""
        empty, inside = Signal(name="lanes_empty", init=1), Signal(range(output_rows(self._config) + 1))
        following = Signal.like(inside)
        m.d.comb += following.eq(inside + step(enters, self.row_arrived, len(inside)))
        m.d.sync += [inside.eq(following), empty.eq(following == 0)]
        with m.If(self._abort):
            m.d.sync += [inside.eq(0), empty.eq(1)]
        return empty

    def _part(self, m: Module, name: str, event: Value) -> Signal:
        """The part of a row that is at a place: they pass it in order."""
        part = Signal(range(self._config.row_parts), name=f"{name}_part")
        with m.If(self._abort):
            m.d.sync += part.eq(0)
        with m.Elif(event):
            m.d.sync += part.eq(part + 1)
        return part
