# amaranth: UnusedElaboratable=no
"""The vector unit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.abi.counters import VectorCycle
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import VectorRow
from sley.abi.timing import SRAM_READ
from sley.hw.core.params import UnitParams
from sley.hw.core.sram.memories import accumulator_write, scratchpad_write
from sley.hw.core.types import has_bits, output_types
from sley.hw.core.unit import UnitCommand, unit_signature
from sley.hw.core.vector.chain_lane import ChainLane
from sley.hw.core.vector.control import VECTOR_FLAGS, VROW_FLAGS
from sley.hw.core.vector.decoded import Decoded
from sley.hw.core.vector.events import later
from sley.hw.core.vector.kind import KIND, command_kind
from sley.hw.core.vector.lane import VectorLane
from sley.hw.core.vector.lane_control import (
    RELU_LATENCY,
    SOURCE_LATENCY,
    bias_latency,
    binary_latency,
    output_latency,
    scale_latency,
)
from sley.hw.core.vector.reads import READ_PORTS, VectorReads, operand_ports
from sley.hw.core.vector.source import Source
from sley.hw.core.vector.writes import VectorWrites, output_rows
from sley.hw.counters.classes import class_events
from sley.hw.elaboration.shared import shared


class State(enum.Enum):
    """What the unit is doing."""

    IDLE = 0
    CHECK = 1  # the command; SET is done here
    RUN = 2  # the rows, until the last one is written
    FAULT = 3  # report it
    SIGNAL = 4  # offer the signal set
    DECODE = 5  # the chain of a VECTOR
    FOLD = 6  # a row register


class VectorUnit(wiring.Component):
    """Executes VECTOR and VROW: lanes over rows of the accumulators and rows, or halves of rows, of the scratchpad.

    A VECTOR reads a row of A and, if it has one, of B, passes them through the steps that its flags name, and writes
    the result, for as many rows as it says. With fewer lanes than columns a row has ``row_parts`` parts: it is read
    once for each, the lanes take other columns each time, and it is written when all have come back. The reads of a
    part are granted independently; the next one follows when both are. Results wait in a queue for the write port; a
    row starts only when there is a place for it. Commands run one at a time: a command starts when the one before has
    written its last row. A row may be read before earlier rows of the same command are written: in place (the rows of
    A or B are those of the output) is well-defined, any other overlap of sources and output is not.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    command, signal, fault, busy, retired, abort, clear : as of unit_signature
        The ports of a unit. ``clear`` also sets both row registers to 0.
    scratchpad_read_a, scratchpad_read_b, accumulator_read_a, accumulator_read_b : Out(read_port)
        Sources, of ``row_parts`` parts; VROW uses accumulator_read_a.
    scratchpad_write : Out(scratchpad_write(config))
        Outputs of 8 bits, one half of a row, and of 16 bits, whole rows.
    accumulator_write : Out(accumulator_write(config))
        All other outputs, whole rows.
    events : Out(class_events(VectorCycle))
        For counters: ``row``, ``operands``, ``results`` and ``drain``.

    Rules
    -----
    1. All three rows of a step are checked before it reads. After a row that does not exist (in the order A, B, output)
       earlier rows are completed and written, then the fault is raised.
    2. Before the first row: BAD_PARAMETER for more than 65535 rows, then ILLEGAL_INSTRUCTION, with address 0, for a
       reserved value, a half that does not exist and a type of 16 bits where it cannot be.

    Latency
    ------- From the acceptance of a command to the offer of its signal set: p + 8 cycles and the latency of the lanes
    for a VECTOR of p parts of rows (p + 14 for a copy, p + 33 at most), 6 + ``row_parts`` for VROW, 2 for SET; the next
    command is accepted in the cycle after the signal set. No timing depends on data.

    Throughput
    ----------
    1 part per cycle if the ports grant it; 2 cycles per part if A and B are in one bank.

    Cost
    ----
    The lanes (see ``VectorLane``), ``VectorReads``, ``VectorWrites``; with several parts a row of registers to collect
    them.
    """

    command: stream.Interface
    fault: data.View
    busy: Signal
    retired: Signal
    abort: Signal
    clear: Signal
    events: data.View

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                **unit_signature().members,
                **operand_ports(config),
                "scratchpad_write": Out(scratchpad_write(config)),
                "accumulator_write": Out(accumulator_write(config)),
                "events": Out(class_events(VectorCycle)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chains = self._config.vector_chains
        state = Signal(State)
        command = Signal(UnitCommand, reset_less=True)
        kind = Signal(KIND, reset_less=True)
        vector = data.View(VECTOR_FLAGS, command.flags)
        whole = has_bits(vector.out, 16, output_types(self._config))

        m.submodules.params = params = UnitParams(Unit.VECTOR, self._config)
        m.d.comb += [
            params.clear.eq(self.clear | self.abort),
            params.param.eq(command.flags[: len(params.param)]),
            params.value.eq(command.a),
        ]
        decoded = self._chains(m, state, command, kind, params) if chains else None
        silent = decoded.control.silent if decoded else Const(0, 1)

        m.submodules.reads = reads = VectorReads(self._config)
        start = Signal()
        can_issue = Signal()
        faulted = Signal(reset_less=True)  # a row does not exist
        issuing = Signal()  # rows of the command are left to be read
        advance, row_advance = reads.advance, reads.row_advance
        m.d.comb += [
            reads.command.eq(command),
            reads.params.eq(params.values),
            reads.is_vrow.eq(kind.vrow),
            reads.to_scratchpad.eq(kind.to_scratchpad),
            reads.start.eq(start),
            reads.go.eq(can_issue),
            reads.faulted.eq(faulted),
        ]
        if decoded:
            m.d.comb += [reads.chained.eq(kind.chained), reads.chain.eq(decoded.chain)]
        for name in READ_PORTS:
            connect(m, getattr(reads, name), flipped(getattr(self, name)))

        # Command
        rows_at_once = output_rows(self._config)
        outstanding = Signal(range(rows_at_once + 1))
        room = Signal(init=1)  # outstanding != rows_at_once
        bad_set = Signal(reset_less=True)
        bad_count = Signal(reset_less=True)
        m.d.sync += faulted.eq((state == State.RUN) & (faulted | (issuing & reads.outside)))
        bad_parameter = command.c & bad_count.replicate(32) | params.param & bad_set.replicate(len(params.param))
        self._record_fault(m, command.pc, reads.address | bad_parameter, faulted, bad_set | bad_count)
        begins = Signal()  # to read rows
        legal_vector = kind.vector & ~kind.too_many & ~kind.illegal
        set_fails, goes = params.bad, start & (kind.vrow & ~kind.illegal | (legal_vector & ~kind.empty))
        settled = Const(1, 1)  # nothing of the rows that are through is on its way
        if decoded:
            starts = ((state == State.CHECK) & ~kind.chained) | (state == State.DECODE)
            set_fails, settled = Mux(decoded.known, decoded.bad, params.bad), ~decoded.busy
            goes &= ~(kind.chained & decoded.illegal)
        else:
            starts = state == State.CHECK
        m.d.comb += [
            self.signal[0].payload.eq(command.signal),
            start.eq(starts),
            begins.eq(goes),
            can_issue.eq(issuing & ~reads.outside & room),
        ]
        m.d.sync += issuing.eq((begins | (issuing & ~reads.outside & ~reads.ends)) & ~self.abort)
        with m.Switch(state):
            with m.Case(State.IDLE):
                m.d.comb += self.command.ready.eq(1)
                m.d.sync += [
                    command.eq(self.command.payload),
                    kind.eq(command_kind(self._config, self.command.payload)),
                ]
                with m.If(self.command.valid):
                    m.d.sync += state.eq(State.CHECK)
            with m.Case(State.CHECK):
                m.d.comb += params.set.eq(kind.set)
                m.d.sync += [bad_set.eq(kind.set), bad_count.eq(kind.vector & kind.too_many), state.eq(State.SIGNAL)]
                with m.If(begins):
                    m.d.sync += state.eq(State.RUN)
                with m.Elif(
                    (kind.set & set_fails)
                    | (kind.vector & (kind.too_many | kind.illegal))
                    | (kind.vrow & kind.illegal)
                    | ~(kind.set | kind.vector | kind.vrow | kind.vfold)
                ):
                    m.d.sync += state.eq(State.FAULT)
                if decoded:
                    with m.Elif(kind.chained):
                        m.d.sync += state.eq(State.DECODE)
                    with m.Elif(kind.vfold):
                        m.d.sync += state.eq(Mux(decoded.bad_fold, State.FAULT, State.FOLD))
            if decoded:
                with m.Case(State.DECODE):
                    m.d.sync += state.eq(Mux(decoded.illegal, State.FAULT, Mux(begins, State.RUN, State.SIGNAL)))
                with m.Case(State.FOLD), m.If(~decoded.busy):
                    m.d.sync += state.eq(State.SIGNAL)
            with m.Case(State.RUN), m.If(~issuing & (outstanding == 0) & settled):
                m.d.sync += state.eq(Mux(faulted, State.FAULT, State.SIGNAL))
            with m.Case(State.FAULT):
                m.d.comb += self.fault.valid.eq(~self.abort)
                m.d.sync += state.eq(State.SIGNAL)
            with m.Case(State.SIGNAL):
                m.d.comb += [self.signal[0].valid.eq(1), self.retired.eq(self.signal[0].ready)]
                with m.If(self.signal[0].ready):
                    m.d.sync += state.eq(State.IDLE)
        with m.If(self.abort):
            m.d.sync += state.eq(State.IDLE)
        if decoded:
            m.d.comb += decoded.reductions.rows_end.eq((state == State.RUN) & ~issuing & (outstanding == 0))
        m.d.comb += self.busy.eq(state != State.IDLE)

        row_arrived, result = self._lanes(m, command, kind, reads, params, start, decoded, platform)
        m.submodules.writes = writes = VectorWrites(self._config)
        for name in ("scratchpad_write", "accumulator_write"):
            connect(m, getattr(writes, name), flipped(getattr(self, name)))
        m.d.comb += [
            writes.i.valid.eq(row_arrived & ~kind.vrow & ~silent),
            writes.i.payload.eq(result),
            writes.start.eq(start),
            writes.row.eq(command.b),
            writes.stride.eq(params.values.out_stride),
            writes.to_scratchpad.eq(kind.to_scratchpad),
            writes.whole.eq(whole),
            writes.half.eq(vector.out_half),
            writes.abort.eq(self.abort),
        ]
        row_retired = writes.written | (row_arrived & (kind.vrow | silent))
        with m.If(row_advance ^ row_retired):
            m.d.sync += [
                outstanding.eq(Mux(row_retired, outstanding - 1, outstanding + 1)),
                room.eq(row_retired | (outstanding != rows_at_once - 1)),
            ]
        with m.If(self.abort):
            m.d.sync += [outstanding.eq(0), room.eq(1)]

        m.d.comb += [
            self.events.row.eq(advance),
            self.events.operands.eq(can_issue & ~advance),
            self.events.results.eq(issuing & ~room),
            self.events.drain.eq((state == State.RUN) & ~issuing),
        ]
        return m

    def _lanes(
        self,
        m: Module,
        command: data.View,
        kind: data.View,
        reads: VectorReads,
        params: UnitParams,
        start: Value,
        decoded: "Decoded | None",
        platform: object,
    ) -> tuple[Value, Value]:
        """The way of the rows from the memories through the lanes: when one has come to its end, and what it is then.

        A part passes every place one cycle before its data: the lanes' registers, where that of a VROW ends, bias,
        scale, relu, and the end.
        """
        config, types, parts = self._config, self._config.vector_types, self._config.row_parts
        vector, vrow = data.View(VECTOR_FLAGS, command.flags), data.View(VROW_FLAGS, command.flags)
        flags = decoded.flags if decoded else vector
        needs_float = decoded.needs_float if decoded else vector.scale
        is_splat, part = reads.splat, reads.part
        arriving = {}
        for name, granted in (("a", reads.a_granted | (reads.advance & is_splat)), ("b", reads.b_granted)):
            arriving[name] = Signal(SRAM_READ, name=f"{name}_arriving")
            m.d.sync += arriving[name].eq(Mux(self.abort, 0, Cat(granted, arriving[name])))
        taken = later(m, "taken", reads.advance, {SRAM_READ: Const(1, 1)}, self.abort)
        first = binary_latency(flags)
        to_scale, to_end = bias_latency(flags, types, needs_float), output_latency(flags, types, needs_float)
        at_bias = later(m, "bias", taken & ~kind.vrow, first, self.abort, SOURCE_LATENCY)
        at_scale = later(m, "scale", at_bias, to_scale, self.abort)
        at_relu = later(m, "relu", at_scale, scale_latency(flags), self.abort)
        if decoded:
            at_final: Value = decoded.stages.at_final
            before = {cycles - 1: chosen for cycles, chosen in to_scale.items()}
            m.d.comb += [
                decoded.stages.at_word.eq(later(m, "word", taken & ~kind.vrow, {1: Const(1, 1)}, self.abort)),
                decoded.stages.before_multiply.eq(later(m, "before_multiply", at_bias, before, self.abort)),
                decoded.stages.at_relu.eq(at_relu),
                decoded.reductions.join.eq(decoded.stages.at_join),
                decoded.reductions.last.eq(later(m, "last", at_final, {1: Const(1, 1)}, self.abort)),
            ]
            to_final = to_end
        else:
            at_final, to_final = at_relu, {RELU_LATENCY + cycles: chosen for cycles, chosen in to_end.items()}
        ends = later(m, "end", at_final, to_final, self.abort)
        arrived = Signal()
        m.d.sync += arrived.eq(Mux(kind.vrow, taken, ends) & ~self.abort)

        # Part of a row: that is at bias or scale, that arrives
        arrived_part, bias_part, scale_part = (
            self._part(m, name, start, event)
            for name, event in (("arrived", arrived), ("bias", at_bias), ("scale", at_scale))
        )
        row_arrived = Signal()
        m.d.comb += row_arrived.eq(arrived & (arrived_part == parts - 1))

        lanes: list[VectorLane] = [
            ChainLane(types, config.vector_functions) if decoded else VectorLane(types, parts)
            for _ in range(config.vector_lanes)
        ]
        splat = Signal(32, reset_less=True)
        m.d.sync += splat.eq(command.a)
        with m.If(~is_splat):
            m.d.sync += splat.eq(0)
        sources = {
            "a": Source(
                *(m, "a", config, part, arriving["a"][-1], Const(0, 1)),
                *(self.scratchpad_read_a, self.accumulator_read_a),
                *(reads.a_accumulator & ~is_splat, ~reads.a_accumulator, vector.a_half, vector.a_type),
            ),
            "b": Source(
                *(m, "b", config, part, arriving["b"][-1], ~reads.uses_b),
                *(self.scratchpad_read_b, self.accumulator_read_b),
                *(reads.b_accumulator, ~reads.b_accumulator, vector.b_half, vector.b_type),
            ),
        }
        if decoded:
            operands = decoded.chain.operands
            c_arriving = later(m, "c_arriving", reads.c_granted, {SRAM_READ: Const(1, 1)}, self.abort)
            sources["c"] = Source(
                *(m, "c", config, part, c_arriving, ~reads.uses_c),
                *(self.scratchpad_read_b, self.accumulator_read_b),
                *(~reads.b_accumulator, reads.b_accumulator, operands.c_half, operands.c_type),
            )
        loads = arrived & kind.vrow
        for index, lane in enumerate(lanes):
            m.submodules[f"lane_{index}"] = shared(lane, "sley_vector_lane", platform)
            for name, source in sources.items():
                for what, value in source.lane(index).items():
                    word = value | splat if (name, what) == ("a", "word") else value
                    m.d.comb += getattr(lane, name if what == "word" else f"{name}_{what}").eq(word)
            m.d.comb += [
                lane.flags.eq(flags),
                lane.bias_load.eq(loads & (vrow.row == VectorRow.BIAS)),
                lane.scale_load.eq(loads & (vrow.row == VectorRow.SCALE)),
                lane.clear.eq(self.clear),
            ]
            if parts > 1:
                m.d.comb += [
                    lane.row_part.eq(arrived_part),
                    lane.bias_part.eq(bias_part),
                    lane.scale_part.eq(scale_part),
                ]
        if decoded:
            decoded.connect_lanes(m, lanes, loads, vrow.row, params)
        result: Value = Cat(lane.o for lane in lanes)
        if parts > 1:
            earlier = Signal(32 * config.array - len(result), reset_less=True)  # parts of this row
            result = Cat(earlier, result)
            with m.If(arrived):
                m.d.sync += earlier.eq(result[-len(earlier) :])
        return row_arrived, result

    def _chains(self, m: Module, state: Signal, command: data.View, kind: data.View, params: UnitParams) -> "Decoded":
        """The table of chains, and what the lanes do in a command."""
        decoded = Decoded(m, self._config, command, kind, state == State.DECODE)
        table, reductions, stages = decoded.table, decoded.reductions, decoded.stages
        checks = state == State.CHECK
        m.d.comb += [
            table.set.eq(checks & kind.set & decoded.known),
            table.clear.eq(self.clear | self.abort),
            reductions.start_fold.eq(checks & kind.vfold & ~decoded.bad_fold),
            reductions.clear.eq(self.clear),
            reductions.abort.eq(self.abort),
            stages.start.eq(checks | (state == State.DECODE)),
            stages.abort.eq(self.abort),
            stages.params.eq(params.values),
        ]
        return decoded

    def _record_fault(self, m: Module, pc: Value, address: Value, outside: Value, bad_parameter: Value) -> None:
        """The record of a command's fault: a row does not exist, a parameter is bad, or the flags are."""
        with m.If(outside):
            m.d.comb += self.fault.code.eq(FaultCode.LOCAL_ADDRESS)
        with m.Elif(bad_parameter):
            m.d.comb += self.fault.code.eq(FaultCode.BAD_PARAMETER)
        with m.Else():
            m.d.comb += self.fault.code.eq(FaultCode.ILLEGAL_INSTRUCTION)
        m.d.comb += [self.fault.pc.eq(pc), self.fault.address.eq(address)]

    def _part(self, m: Module, name: str, start: Value, event: Value) -> Signal:
        """The part of a row that is at a place: they pass it in order."""
        part = Signal(range(self._config.row_parts), name=f"{name}_part", reset_less=True)
        with m.If(start):
            m.d.sync += part.eq(0)
        with m.Elif(event):
            m.d.sync += part.eq(part + 1)
        return part
