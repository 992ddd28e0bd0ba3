"""The store unit: DMA from the scratchpad and the accumulators to memory."""

from amaranth import Cat, Const, Module, Mux, ResetInserter, Signal, Value, signed
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.faults import PC_BITS, FaultCode, Unit
from sley.abi.instructions import SEMAPHORES, Op, Space
from sley.abi.network import AccessError
from sley.hw.core.affine import Loops, Positions, ends_beyond
from sley.hw.core.list_addresses import list_beyond, list_port, run_address
from sley.hw.core.params import UnitParams, flag_bits
from sley.hw.core.sram.memories import accumulator_read, scratchpad_read
from sley.hw.core.store.reads import STRIDE_BITS, StoreReads
from sley.hw.core.store.span import StoreSpan
from sley.hw.core.unit import unit_signature
from sley.hw.memory.run import RUN_BYTES_BITS, Run
from sley.hw.noc.access import ERROR_BITS, fault_code
from sley.hw.stream.buffer import StreamBuffer
from sley.hw.stream.fifo import StreamFIFO

RUNS_AHEAD = 8
"""Runs handed over before the writer takes them, that always fit: covers the latency to the first beat of each."""
COMMANDS = 4
"""Commands that wait to be complete, and one more: a STORE that memory has not acknowledged, and SETs behind it."""


class _Failure(enum.Enum):
    """A command's own error."""

    NONE = 0
    PARAMETER = 1
    ADDRESS = 2
    ROW = 3


_CODES = {
    _Failure.PARAMETER: FaultCode.BAD_PARAMETER,
    _Failure.ADDRESS: FaultCode.BAD_ADDRESS,
    _Failure.ROW: FaultCode.LOCAL_ADDRESS,
}
_Run = data.StructLayout({"addr": 32, "more": 1})
"""A run of the command at hand: no other one begins before the writer took all of them, and they are as long."""
_Incomplete = data.StructLayout(
    {"signal": SEMAPHORES, "pc": PC_BITS, "failure": _Failure, "address": 32, "stores": 1, "phase": 1}
)
"""A command that is complete when memory has acknowledged what it ``stores``. ``address``: of its fault, if there is
one. One that failed comes when memory has acknowledged all, so whether memory refused it is known by then."""


class StoreUnit(wiring.Component):
    """Reads local rows and writes them to memory in runs of bytes.

    For each of COUNT2 slabs and each of rc runs, RUN_BYTES bytes are written from ceil(RUN_BYTES / row bytes) rows.
    Where MEM_STRIDE is RUN_BYTES, the runs of a slab are joined. By a list, run r is at the slab's address plus word r.

    Faults, one for a command, raised when everything before it is acknowledged: BUS_ERROR, PAGE_FAULT or PERMISSION,
    with the command's memory address, if there was one; otherwise BAD_PARAMETER (rc above 65535, with rc; a list
    beyond the accumulators, with LIST_ROW; a bad SET, with its parameter), or that of the first bad run: BAD_ADDRESS,
    with the run's address, before LOCAL_ADDRESS, with its first bad row. Of a bad run no byte is written, and nothing
    after it; after an error of memory, no run that was not handed over yet.

    While memory acknowledges a STORE without an error of its own, the commands behind it execute, up to the end of
    the next STORE; they signal in their order. If it turns out that memory refused the first, bytes of the second are
    written all the same.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    command, signal, fault, busy, retired, abort, clear : as of unit_signature
        The ports of a unit. Ops other than SET and STORE must not come.
    run : Out(stream of Run), data : Out(stream of 8 * bus_bytes bits)
        To a writer to memory; the beats of a run follow whenever the memories grant them.
    phase : Out(1)
        The group of the run, of the two that the writer knows: STOREs alternate.
    writer_pending : In(2)
        Of each group: high from the cycle after a run was accepted until memory has acknowledged all of it.
    writer_error : In(ERROR_BITS), writer_error_phase : In(1)
        ``AccessError`` for a cycle, not later than the last with its group pending: an acknowledgement with an error.
    cut : Out(1)
        No run comes any more, whatever ``more`` of the last one said.
    scratchpad, accumulator : Out(read_port(...))
        Each beat is one read: a row of the scratchpad, or a part of an accumulator row.
    list_read : Out(read_port(...))
        One lane of an accumulator row, a word of a list; on chips with ``gather``.
    acknowledging : Out(1)
        No beat is to be handed over, and memory has not acknowledged all that were; for counters.

    Latency
    -------
    SET takes 2 cycles; STORE 4 cycles to its first run, 5 to its first read, 9 to its first beat, by a list
    LIST_LATENCY - 2 more; 2 from the last
    acknowledgement to the signal. To find the bad row of a bad run takes one cycle for each row and one more.

    Throughput
    ----------
    One read and one run a cycle. Two signal sets wait for the semaphores without keeping anything else.

    Cost
    ----
    Two walks that share their loops, one 16 x 16 multiplier, queues of 8 beats, 8 runs, 8 rows and 4 commands, a stream
    register; with ``gather`` ``ListAddresses``.
    """

    command: stream.Interface
    signal: list[stream.Interface]
    fault: data.View
    busy: Signal
    retired: Signal
    abort: Signal
    clear: Signal
    run: stream.Interface
    data: stream.Interface
    phase: Signal
    writer_pending: Signal
    writer_error: Signal
    writer_error_phase: Signal
    cut: Signal
    scratchpad: wiring.PureInterface
    accumulator: wiring.PureInterface
    acknowledging: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = c = config
        self._limits = (c.scratchpad_rows, c.accumulator_rows)
        super().__init__(
            {
                **unit_signature().members,
                "run": Out(stream.Signature(Run)),
                "data": Out(stream.Signature(8 * c.bus_bytes)),
                "phase": Out(1),
                "writer_pending": In(2),
                "writer_error": In(ERROR_BITS),
                "writer_error_phase": In(1),
                "cut": Out(1),
                "scratchpad": Out(scratchpad_read(c)),
                "accumulator": Out(accumulator_read(c, c.beats_per_accumulator_row)),
                "acknowledging": Out(1),
                **list_port(c),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        row = range(max(self._limits))
        m.submodules.starts = starts = StreamFIFO(row, RUNS_AHEAD)
        m.submodules.run = run = StreamFIFO(_Run, RUNS_AHEAD)
        space = Signal(reset_less=True)
        in_accumulator = space == Space.ACCUMULATOR
        stride = Signal(signed(STRIDE_BITS), reset_less=True)  # rows from chunk to chunk
        less = Signal(RUN_BYTES_BITS, reset_less=True)  # by 1 than the bytes of a run; outlives an abort
        last_beat = less >> exact_log2(c.bus_bytes)  # of a run, counted from 0
        m.submodules.reads = reads = StoreReads(c)
        wiring.connect(m, starts.o, reads.start)
        for inner, outer in (
            (reads.data, self.data),
            (reads.scratchpad, self.scratchpad),
            (reads.accumulator, self.accumulator),
        ):
            wiring.connect(m, inner, wiring.flipped(outer))
        m.d.comb += [reads.space.eq(space), reads.stride.eq(stride), reads.last_beat.eq(last_beat)]
        m.submodules.incomplete = incomplete = ResetInserter(self.abort)(StreamFIFO(_Incomplete, COMMANDS))

        m.submodules.params = params = UnitParams(Unit.STORE, c)
        p = params.values
        # Both walks take the same turns. No SET comes before their end, so the strides stay where they are.
        m.submodules.loops = loops = Loops((16, 16))
        m.submodules.addresses = addresses = Positions(2, limits=(1 << 32,), stride_bits=32)
        m.submodules.rows = rows = Positions(3, limits=self._limits, stride_bits=16)
        # One of these.
        idle = Signal(init=1)
        preparing = Signal()  # how far a run's last row is from its first
        checking = Signal()  # one run a cycle: check, hand over
        searching = Signal()  # a bad run, for the first row that does not exist
        draining = Signal()  # until all is handed over or, after an error, acknowledged
        pc = Signal(PC_BITS, reset_less=True)
        signals = Signal(SEMAPHORES, reset_less=True)
        memory_start = Signal(32, reset_less=True)  # or the bad parameter
        length = Signal(RUN_BYTES_BITS, reset_less=True)
        failed = Signal(_Failure, reset_less=True)
        refused = [Signal(ERROR_BITS, name=f"refused{k}", reset_less=True) for k in range(2)]  # first error of a group
        refused_now = Mux(self.phase, refused[1], refused[0]).any()
        refused_before = Signal(reset_less=True)  # what no run needs to wait for
        m.d.sync += refused_before.eq(refused_now)
        in_use = Signal(2)  # groups of STOREs that are not complete
        stores = Signal(reset_less=True)
        contiguous = Signal(reset_less=True)

        incoming = self.command.payload
        is_set = incoming.op == Op.SET
        to_accumulator = incoming.flags[flag_bits(Op.STORE, "space")]
        take = Signal()
        hand_over = Signal()
        m.submodules.span = span = StoreSpan(c)
        m.d.comb += [
            span.run_bytes.eq(p.run_bytes),
            span.stride.eq(p.chunk_stride),
            span.start.eq(take),
            span.space.eq(to_accumulator),
        ]
        free = idle & ~in_use.bit_select(self.phase, 1)
        # What is pending includes all data of the runs that the writer took, so nothing is left to read either.
        quiet = run.empty & ~self.writer_pending.any()
        handed_over = reads.idle & starts.empty & run.empty
        failing = (stores & refused_now) | (failed != _Failure.NONE)
        m.d.comb += [
            self.run.valid.eq(run.o.valid),
            run.o.ready.eq(self.run.ready),
            self.run.payload.addr.eq(run.o.payload.addr),
            self.run.payload.more.eq(run.o.payload.more),
            self.run.payload.bytes.eq(length),
            self.cut.eq(draining & run.empty),
            self.acknowledging.eq((idle | draining) & reads.taken & starts.empty & ~quiet),
            self.command.ready.eq(free | self.abort),
            take.eq(self.command.valid & free & ~self.abort),
            params.param.eq(incoming.flags[flag_bits(Op.SET, "param")]),
            params.value.eq(incoming.a),
            params.set.eq(take & is_set),
            params.clear.eq(self.clear | self.abort),
            loops.start.eq(take),
            loops.count_0.eq(incoming.c),
            loops.count_1.eq(p.count2),
            loops.step.eq(hand_over),
            addresses.start.eq(take),
            addresses.base.eq(incoming.a),
            rows.start.eq(take),
            rows.base.eq(incoming.b),
            rows.space.eq(to_accumulator),
        ]
        # Of the rows of a run, only those that are searched take turns.
        m.d.comb += [
            addresses.last.eq(loops.last),
            addresses.step.eq(hand_over),
            rows.last.eq(Cat(~searching, loops.last)),
            rows.step.eq(hand_over | (searching & ~rows.outside)),
        ]
        for walk, values in (
            (addresses, (p.mem_stride, p.mem_stride2)),
            (rows, (stride, p.local_stride, p.local_stride2)),
        ):
            m.d.comb += [given.eq(value) for given, value in zip(walk.strides, values, strict=True)]

        # The first row is inside; the last one is not if it is further off than all rows, or the sum shows it.
        last_row = rows.position[: len(span.rows) - 1] + span.rows
        beyond = [last_row[exact_log2(limit)] for limit in self._limits]
        last_outside = span.far | Mux(in_accumulator, *reversed(beyond))
        by_list = incoming.flags[flag_bits(Op.STORE, "by_list")] & c.gather
        moments = {"take": take, "by_list": by_list, "working": preparing | checking, "step": hand_over}
        address, known = run_address(m, c, self, p, addresses.position, **moments)
        missing = ends_beyond(address, less, c.addr_bits)
        good = Signal()
        m.d.comb += [
            good.eq(checking & known & ~(missing | rows.outside | last_outside | refused_before | self.abort)),
            run.i.valid.eq(good & starts.i.ready),
            run.i.payload.addr.eq(address),
            run.i.payload.more.eq(contiguous & ~loops.last[0]),
            starts.i.valid.eq(good & run.i.ready),
            starts.i.payload.eq(rows.position),
            hand_over.eq(good & run.i.ready & starts.i.ready),
            incomplete.i.valid.eq(draining & Mux(failing, quiet, handed_over) & ~self.abort),
            incomplete.i.payload.signal.eq(signals),
            incomplete.i.payload.pc.eq(pc),
            incomplete.i.payload.failure.eq(failed),
            incomplete.i.payload.address.eq(memory_start),
            incomplete.i.payload.stores.eq(stores),
            incomplete.i.payload.phase.eq(self.phase),
        ]
        with m.If(~refused_now & (failed == _Failure.ADDRESS)):
            m.d.comb += incomplete.i.payload.address.eq(address)
        with m.If(~refused_now & (failed == _Failure.ROW)):
            m.d.comb += incomplete.i.payload.address.eq(rows.position)
        # Signals go on through a register of two, so that nothing here waits for the semaphores.
        m.submodules.offers = offers = ResetInserter(self.abort)(StreamBuffer(SEMAPHORES))
        complete = self._complete(m, incomplete.o, refused, offers)
        m.d.comb += self.busy.eq(~idle | ~incomplete.empty | offers.o.valid)

        m.d.sync += in_use.eq(in_use | ((1 << self.phase) & preparing.replicate(2)))
        for k, error in enumerate(refused):
            with m.If((self.writer_error_phase == k) & ~error.any()):
                m.d.sync += error.eq(self.writer_error)
            with m.If((complete & incomplete.o.payload.stores & (incomplete.o.payload.phase == k)) | self.abort):
                m.d.sync += [error.eq(AccessError.NONE), in_use[k].eq(0)]

        many = incoming.c[16:].any()
        nothing = (incoming.c == 0) | (p.count2 == 0) | (p.run_bytes == 0)
        moves = ~is_set & ~many & ~nothing
        with m.If(take):
            m.d.sync += [
                pc.eq(incoming.pc),
                signals.eq(incoming.signal),
                memory_start.eq(Mux(is_set, params.param, Mux(many, incoming.c, incoming.a))),
                space.eq(to_accumulator),
                stride.eq(p.chunk_stride),
                length.eq(p.run_bytes),
                contiguous.eq((p.mem_stride == p.run_bytes) & ~by_list),
                less.eq(span.less),
                stores.eq(~is_set & ~nothing),
                failed.eq(Mux(Mux(is_set, params.bad, many), _Failure.PARAMETER, _Failure.NONE)),
            ]
        with m.If(checking & known & ~refused_before & (missing | rows.outside)):
            m.d.sync += failed.eq(Mux(missing, _Failure.ADDRESS, _Failure.ROW))
        with m.If(searching & rows.outside):
            m.d.sync += failed.eq(_Failure.ROW)

        too_far: Value = Const(0, 1)  # the list, beyond the accumulators
        if c.gather:
            too_far = Signal(reset_less=True)
            with m.If(take):
                m.d.sync += too_far.eq(by_list & list_beyond(c, p.list_row, incoming.c))
            with m.If(preparing & too_far):
                m.d.sync += [failed.eq(_Failure.PARAMETER), memory_start.eq(p.list_row)]

        stops = known & (refused_before | missing | rows.outside)
        ends = hand_over & loops.last.all()
        drained = incomplete.i.valid & incomplete.i.ready
        m.d.sync += [
            idle.eq((idle & ~take) | drained),
            preparing.eq(take & moves),
            checking.eq((preparing & ~too_far) | (checking & ~(stops | (known & last_outside) | ends))),
            searching.eq((checking & known & ~stops & last_outside) | (searching & ~rows.outside)),
            draining.eq(
                (take & ~moves)
                | (preparing & too_far)
                | (checking & (stops | ends))
                | (searching & rows.outside)
                | (draining & ~drained)
            ),
        ]
        with m.If(drained):
            m.d.sync += self.phase.eq(self.phase ^ stores)
        with m.If(self.abort & self.busy):
            # What the writer has been promised still goes to it.
            m.d.sync += [preparing.eq(0), checking.eq(0), searching.eq(0)]
            m.d.sync += [idle.eq(draining & quiet), draining.eq(~(draining & quiet))]
        return m

    def _complete(self, m: Module, incomplete: Value, refused: list[Signal], offers: Value) -> Value:
        """Signals and faults in the order of the commands; returns whether one becomes complete."""
        command = incomplete.payload
        unacknowledged = command.stores & self.writer_pending.bit_select(command.phase, 1)
        error = Mux(command.stores, Mux(command.phase, refused[1], refused[0]), AccessError.NONE)
        complete = incomplete.valid & incomplete.ready
        m.d.comb += [
            incomplete.ready.eq(offers.i.ready & ~unacknowledged),
            offers.i.valid.eq(incomplete.valid & ~unacknowledged),
            offers.i.payload.eq(command.signal),
            offers.o.ready.eq(self.signal[0].ready),
            self.signal[0].valid.eq(offers.o.valid),
            self.signal[0].payload.eq(offers.o.payload),
            self.retired.eq(self.signal[0].valid & self.signal[0].ready),
        ]
        m.d.sync += self.fault.valid.eq(complete & (error.any() | (command.failure != _Failure.NONE)) & ~self.abort)
        with m.If(complete):
            m.d.sync += [
                self.fault.pc.eq(command.pc),
                self.fault.address.eq(command.address),
            ]
            with m.Switch(command.failure):
                for failure, code in _CODES.items():
                    with m.Case(failure):
                        m.d.sync += self.fault.code.eq(code)
            with m.If(error.any()):
                m.d.sync += self.fault.code.eq(fault_code(error))
        return complete
