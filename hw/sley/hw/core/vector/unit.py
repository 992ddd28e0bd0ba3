# amaranth: UnusedElaboratable=no
"""The vector unit."""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import Out, connect, flipped

from sley.abi.config import ChipConfig
from sley.abi.counters import VectorCycle
from sley.abi.faults import FaultCode, Unit
from sley.abi.parameters import Param
from sley.hw.core.params import UnitParams
from sley.hw.core.sram.memories import accumulator_write, scratchpad_write
from sley.hw.core.types import has_bits, output_types
from sley.hw.core.unit import UnitCommand, unit_signature
from sley.hw.core.vector.control import VECTOR_FLAGS, is_code
from sley.hw.core.vector.decoded import Decoded
from sley.hw.core.vector.in_flight import InFlight
from sley.hw.core.vector.kind import KIND, command_kind
from sley.hw.core.vector.lanes import CURRENT, Lanes
from sley.hw.core.vector.reads import READ_PORTS, VectorReads, operand_ports
from sley.hw.core.vector.retirement import Retirement
from sley.hw.core.vector.writes import VectorWrites, output_rows
from sley.hw.counters.classes import class_events

WALKED = (Param.A_STRIDE, Param.B_ROW, Param.B_STRIDE, Param.OUT_STRIDE, Param.C_ROW, Param.C_STRIDE)
"""Parameters that say which rows there are, and nothing of what the lanes do."""


class State(enum.Enum):
    """What the unit does with the command at hand."""

    IDLE = 0  # there is none
    CHECK = 1  # it; SET is done here; until it may begin
    DECODE = 2  # the chain of a VECTOR; until it may begin
    REFUSE = 3  # it is a fault, as soon as all before it are done


LEAVES = data.StructLayout({"valid": 1, "rows": 1, "fold": 1})
"""The command at hand leaves: it is done, or begins a fold; it begins to read rows."""


class VectorUnit(wiring.Component):
    """Executes VECTOR and VROW: lanes over rows of the accumulators and rows, or halves of rows, of the scratchpad.

    A VECTOR reads a row of A and, if it has one, of B, passes them through the steps that its flags name, and writes
    the result, for as many rows as it says. With fewer lanes than columns a row has ``row_parts`` parts: it is read
    once for each, the lanes take other columns each time, and it is written when all have come back. The reads of a
    part are granted independently; the next one follows when both are. Results wait in a queue for the write port; a
    row starts only when there is a place for it. A row may be read before earlier rows of the same command are
    written: in place (the rows of A or B are those of the output) is well-defined, any other overlap of sources and
    output is not.

    Commands overlap: one is taken, checked and decoded while rows of those before are read, in the lanes, or wait to be
    written. Rows with other settings wait until the lanes are empty; reads wait for writes of commands before.

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
    3. Results are those of one command after the other. Signal sets, and faults, come in the order of the commands.
    4. ``busy`` is high besides while a reduction is on its way to its partial.

    Latency
    ------- From the acceptance of a command to the offer of its signal set: p + 8 cycles and the latency of the lanes
    for a VECTOR of p parts of rows (p + 14 for a copy, p + 33 at most), 8 + ``row_parts`` for VROW, 3 for SET, if it is
    alone. No timing depends on data.

    Throughput
    ----------
    1 part per cycle if the ports grant it; 2 cycles per part if A and B are in one bank. Between two commands one cycle
    if the lanes do the same, else 4 and their latency.

    Cost
    ----
    The lanes (see ``VectorLane``), ``VectorReads``, ``InFlight``, ``VectorWrites``, ``Retirement``; with several parts
    a row of registers to collect them.
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
        config, chains = self._config, self._config.vector_chains
        state = Signal(State)
        command = Signal(UnitCommand, reset_less=True)  # at hand
        kind = Signal(KIND, reset_less=True)
        current = Signal(CURRENT, reset_less=True)  # whose rows are read
        vector = data.View(VECTOR_FLAGS, current.flags)

        m.submodules.params = params = UnitParams(Unit.VECTOR, self._config)
        m.d.comb += [
            params.clear.eq(self.clear | self.abort),
            params.param.eq(command.flags[: len(params.param)]),
            params.value.eq(command.a),
        ]
        takes = Signal()  # the command at hand may be one whose rows are read next
        begins = Signal()  # it is
        changes = Signal()  # what the lanes do
        decoded = self._chains(m, state, command, kind, params, changes) if chains else None
        m.submodules.reads = reads = VectorReads(config)
        lanes = Lanes(m, config, current, reads, self.abort, self.clear, decoded, params, platform)
        m.submodules.in_flight = in_flight = InFlight(config, output_rows(config), len(reads.looks))
        m.submodules.writes = writes = VectorWrites(config)
        m.submodules.retirement = retirement = Retirement()

        # Rows of the current command
        issuing = Signal()  # some are left to be read
        faulted = Signal()  # one does not exist
        can_issue = Signal()
        m.d.comb += [
            can_issue.eq(issuing & ~reads.outside & in_flight.room & ~in_flight.blocked),
            reads.command.eq(command),
            reads.params.eq(params.values),
            reads.flags.eq(current.flags),
            reads.is_vrow.eq(kind.vrow),
            reads.to_scratchpad.eq(kind.to_scratchpad),
            reads.start.eq(takes),
            reads.begin.eq(begins),
            reads.go.eq(can_issue),
            reads.faulted.eq(faulted),
            *(theirs.eq(look) for theirs, look in zip(in_flight.looks, reads.looks, strict=True)),
            in_flight.start.eq(takes),
            in_flight.writes.eq(reads.writes),
            in_flight.backwards.eq(reads.backwards),
            in_flight.to.eq(reads.to),
            in_flight.last.eq(issuing & reads.last),
            in_flight.issue.eq(reads.row_advance),
            in_flight.done.eq(writes.done),
            in_flight.abort.eq(self.abort),
            writes.to.valid.eq(reads.row_advance),
            writes.to.payload.place.eq(reads.to),
            writes.to.payload.whole.eq(has_bits(vector.out, 16, output_types(config))),
            writes.to.payload.half.eq(vector.out_half),
            writes.to.payload.written.eq(reads.writes),
            writes.to.payload.last.eq(reads.last),
            writes.i.valid.eq(lanes.row_arrived),
            writes.i.payload.eq(lanes.result),
            writes.abort.eq(self.abort),
        ]
        if decoded:
            m.d.comb += [reads.chained.eq(kind.chained), reads.chain.eq(decoded.chain)]
        for name in READ_PORTS:
            connect(m, getattr(reads, name), flipped(getattr(self, name)))
        for name in ("scratchpad_write", "accumulator_write"):
            connect(m, getattr(writes, name), flipped(getattr(self, name)))
        m.d.sync += issuing.eq((begins | (issuing & ~reads.outside & ~reads.ends)) & ~self.abort)
        with m.If(begins):
            m.d.sync += [
                current.flags.eq(command.flags),
                current.vrow.eq(kind.vrow),
            ]
        began = Signal()  # the command that did is still here
        m.d.sync += began.eq(begins)
        with m.If(began):
            m.d.sync += current.splat.eq(Mux(reads.splat, command.a, 0))

        # When a command may begin
        same = Signal(reset_less=True)  # its flags are those of the current one
        alike = Signal()  # its rows may follow those of the current one into the lanes
        keeps = Signal()  # what the lanes do is what the last VECTOR asked for, and nothing else was asked for since
        settled, counts = Const(1, 1), Const(0, 1)
        if decoded:
            settled, counts = ~decoded.busy, decoded.counts
        may_begin, may_change = Signal(), Signal()
        m.d.comb += [
            takes.eq((state != State.IDLE) & ~issuing & ~faulted),
            alike.eq(kind.vector & keeps & same & ~counts),
            may_change.eq(~issuing & ~faulted & lanes.empty & settled),
            may_begin.eq(may_change | (~issuing & ~faulted & alike)),
        ]
        with m.If(changes):
            m.d.sync += keeps.eq(begins & kind.vector)
        if decoded:
            with m.If(params.set & ~is_code(params.param, WALKED)):
                m.d.sync += keeps.eq(0)
        with m.If(self.abort | self.clear):  # chains and splats are those of another block
            m.d.sync += keeps.eq(0)

        leaves = self._front(m, state, kind, params, decoded, retirement, may_begin, may_change)
        left = Signal(LEAVES)
        m.d.comb += [
            begins.eq(leaves.rows),
            changes.eq((leaves.rows & ~alike) | (leaves.valid & leaves.fold)),
            retirement.i.payload.signal.eq(command.signal),  # it is still here in the cycle after the one it leaves in
            retirement.i.payload.rows.eq(left.rows),
            retirement.i.payload.fold.eq(left.fold),
        ]
        m.d.sync += [
            retirement.i.valid.eq((leaves.valid | leaves.rows) & ~self.abort),
            left.eq(leaves),
        ]
        stalls = (issuing & reads.outside) | faulted
        with m.If(state == State.IDLE):
            m.d.comb += self.command.ready.eq(~stalls | self.abort)
            with m.If(~stalls):  # else it is asked for the first row of the one before
                m.d.sync += [
                    command.eq(self.command.payload),
                    kind.eq(command_kind(config, self.command.payload)),
                    same.eq(self.command.payload.flags == current.flags),
                ]
            with m.If(self.command.valid & self.command.ready):
                m.d.sync += state.eq(State.CHECK)
        with m.If(self.abort):
            m.d.sync += state.eq(State.IDLE)

        # A row that does not exist: a fault when all before it are done
        raises = Signal()
        begun_pc = Signal.like(command.pc, reset_less=True)
        m.d.sync += [
            faulted.eq((faulted | (issuing & reads.outside)) & ~raises & ~self.abort),
            raises.eq(faulted & ~raises & ~in_flight.some & retirement.rows_next & ~self.abort),
        ]
        with m.If(begins):
            m.d.sync += begun_pc.eq(command.pc)
        refuses = state == State.REFUSE
        bad_set, bad_count = refuses & kind.set, refuses & kind.vector & kind.too_many
        with m.If(refuses):
            m.d.comb += self.fault.valid.eq(~retirement.some & ~self.abort)
        with m.If(raises):
            m.d.comb += self.fault.valid.eq(~self.abort)
        bad_parameter = command.c & bad_count.replicate(32) | params.param & bad_set.replicate(len(params.param))
        pc = Mux(raises, begun_pc, command.pc)
        self._record_fault(m, pc, reads.address | bad_parameter, raises, bad_set | bad_count)

        m.d.comb += [
            retirement.rows_end.eq(writes.ends | raises),
            retirement.folding.eq(decoded.busy if decoded else 0),
            retirement.abort.eq(self.abort),
            self.retired.eq(self.signal[0].valid & self.signal[0].ready),
            self.busy.eq((state != State.IDLE) | retirement.i.valid | retirement.some),
            self.events.row.eq(reads.advance),
            self.events.operands.eq(can_issue & ~reads.advance),
            self.events.results.eq(issuing & ~in_flight.room),
            self.events.drain.eq(in_flight.some),
        ]
        connect(m, retirement.signal, flipped(self.signal[0]))
        if decoded:
            m.d.comb += [
                decoded.reductions.rows_end.eq(~issuing & lanes.empty),
                self.busy.eq((state != State.IDLE) | retirement.i.valid | retirement.some | decoded.busy),
            ]
        return m

    def _front(
        self,
        m: Module,
        state: Signal,
        kind: data.View,
        params: UnitParams,
        decoded: Decoded | None,
        retirement: Retirement,
        may_begin: Value,
        may_change: Value,
    ) -> data.View:
        """The command at hand, up to where it leaves: to read its rows, for a fold, or because it is done."""
        leaves = Signal(LEAVES)
        room = retirement.i.ready
        set_fails: Value = params.bad
        if decoded:
            set_fails = Mux(decoded.known, decoded.bad, params.bad)
        with m.Switch(state):
            with m.Case(State.CHECK):
                with m.If(kind.set):
                    m.d.comb += [params.set.eq(room), leaves.valid.eq(room & ~set_fails)]
                    with m.If(set_fails):
                        m.d.sync += state.eq(State.REFUSE)
                with m.Elif(kind.refused):
                    m.d.sync += state.eq(State.REFUSE)
                if decoded:
                    with m.Elif(kind.chained):
                        m.d.sync += state.eq(State.DECODE)
                    with m.Elif(kind.vfold):
                        m.d.comb += [leaves.valid.eq(room & may_change & ~decoded.bad_fold), leaves.fold.eq(1)]
                        with m.If(decoded.bad_fold):
                            m.d.sync += state.eq(State.REFUSE)
                with m.Elif(~kind.runs):
                    m.d.comb += leaves.valid.eq(room)
            if decoded:
                with m.Case(State.DECODE):
                    with m.If(decoded.illegal):
                        m.d.sync += state.eq(State.REFUSE)
                    with m.Elif(kind.empty):
                        m.d.comb += leaves.valid.eq(room)
            with m.Case(State.REFUSE):
                m.d.comb += leaves.valid.eq(~retirement.some)
        runs: Value = (state == State.CHECK) & kind.runs
        if decoded:
            runs |= (state == State.DECODE) & ~kind.empty & ~decoded.illegal
        m.d.comb += leaves.rows.eq(runs & room & may_begin)
        with m.If(leaves.valid | leaves.rows):
            m.d.sync += state.eq(State.IDLE)
        return leaves

    def _chains(
        self, m: Module, state: Signal, command: data.View, kind: data.View, params: UnitParams, changes: Value
    ) -> Decoded:
        """The table of chains, and what the lanes do in a command."""
        decoded = Decoded(m, self._config, command, kind, state == State.DECODE)
        table, reductions, stages = decoded.table, decoded.reductions, decoded.stages
        m.d.comb += [
            table.set.eq(params.set & decoded.known),
            table.clear.eq(self.clear | self.abort),
            reductions.start_fold.eq(changes & kind.vfold),
            reductions.clear.eq(self.clear),
            reductions.abort.eq(self.abort),
            stages.start.eq(changes),
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
