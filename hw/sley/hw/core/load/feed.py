"""The feed of the load unit: makes rows of beats and fill values, and finds the faults."""

from amaranth import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.hw.core.affine import Loops
from sley.hw.core.load.permute import Permute, interleaves, unit_runs
from sley.hw.core.load.queues import FEED, FEED_PARAMS, PENDING, TARGET, params_of
from sley.hw.core.load.target import LoadTarget
from sley.hw.core.unit import Fault
from sley.hw.memory.run import beat
from sley.hw.noc.access import fault_code


class _State(enum.Enum):
    IDLE = 0
    PLACE = 1
    COMPLETE = 2  # takes what is left of a command at fault, then hands over its completion


def placed(config: ChipConfig) -> data.StructLayout:
    """A row, or a beat of one, or the end of a command."""
    return data.StructLayout(
        {
            "write": 1,  # otherwise it only completes a command
            "done": 1,  # the last one of its command
            "space": 1,
            "row": range(max(config.scratchpad_rows, config.accumulator_rows)),
            "beats": config.beats_per_accumulator_row,  # of an accumulator row
            "data": 8 * config.bus_bytes,
        }
    )


class LoadFeed(wiring.Component):
    """Makes rows of beats and of the fill value, and sends each where it belongs.

    Rows that are permuted go through ``Permute``, and the target follows what leaves it. Commands that have nothing to
    permute wait until it is empty; those without rows pass, and the target completes them. After an abort, and a fault
    of rows that are permuted, ``Permute`` is reset a cycle later; the command at fault completes after that.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    job : In(stream of FEED), target : In(stream of TARGET), pending : In(stream of PENDING)
        Commands and runs, from the request side.
    beat : In(stream of beat(config))
        From a reader of memory.
    o : Out(stream of placed(config))
        The end of each command is on it once.
    fault : Out(Fault)
        As in ``unit_signature``.
    newest : In(1), curtail : Out(1)
        No command waits behind the one at hand; such a command is at fault.
    abort, clear : In(1)
        As in ``unit_signature``.
    busy : Out(1)
        A command is here.

    Latency
    -------
    1 cycle from the acceptance of a command to its first row, none from a beat to its row, that of ``Permute`` where it
    is permuted.

    Throughput
    ----------
    A beat or row of fill a cycle, without gaps between commands.

    Cost
    ----
    Three counters, the target, ``Permute``.
    """

    job: stream.Interface
    target: stream.Interface
    pending: stream.Interface
    beat: stream.Interface
    o: stream.Interface
    fault: data.View
    newest: Signal
    curtail: Signal
    abort: Signal
    clear: Signal
    busy: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        self._beats = config.beats_per_accumulator_row
        super().__init__(
            {
                "job": In(stream.Signature(FEED)),
                "target": In(stream.Signature(TARGET)),
                "pending": In(stream.Signature(PENDING)),
                "beat": In(stream.Signature(beat(config))),
                "o": Out(stream.Signature(placed(config))),
                "fault": Out(Fault),
                "newest": In(1),
                "curtail": Out(1),
                "abort": In(1),
                "clear": In(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        m.submodules.counts = loops = Loops((16, 17, 16), {1: unit_runs(c)[-1 if interleaves(c) else -2]})
        job, writes = self.job.payload, self.o
        clear = self.clear | self.abort
        chunks, count2, run_bytes, fill = params_of(m, FEED_PARAMS, self.job, job.runs, clear)
        permute = Permute(c)
        drops = Signal()  # the command at fault is permuted
        dropped = Signal()
        m.d.sync += dropped.eq(drops | self.abort)
        m.submodules.permute = ResetInserter(dropped)(permute)
        m.submodules.target = target = LoadTarget(c)
        wiring.connect(m, wiring.flipped(self.target), target.job)
        state = Signal(_State)
        space = Signal(reset_less=True)
        empty = Signal(reset_less=True)
        permuted = Signal(reset_less=True)
        drained = Signal(reset_less=True)  # no beat of this command is still to come
        padded = Signal(reset_less=True)  # the runs with data of this slab are behind
        filled = Signal(reset_less=True)  # the rest of this run has no bytes
        index = Signal(range(self._beats), reset_less=True)  # of the next beat in an accumulator row

        placing, completing = state
        store = Signal()
        row_done = Signal()
        leave = Signal()
        take = Signal()
        follow = Signal()  # the target takes this command when it gets there
        pending, run = self.pending, self.pending.payload
        row_outside = target.outside & ~permuted
        # All rows before this one have been placed or are on the way. Only faults wait for it, so it may come late.
        settled = Signal(reset_less=True)
        m.d.sync += settled.eq(target.none & ~permute.complete & ~store & ~take)
        fault_allowed = ~permuted | settled
        error = self.beat.valid & self.beat.payload.error.any()
        can_place = placing & ~row_outside
        # A beat is what the row needs.
        needs_beat = can_place & ~filled & pending.valid & ~run.bad
        read = needs_beat & (fault_allowed | ~error)
        sink = completing & ~drained | self.abort
        move = self.beat.valid & self.beat.ready
        ended = move & self.beat.payload.last
        beat_sound = needs_beat & self.beat.valid & ~self.beat.payload.error.any()
        data = self._filled(self.beat.payload, filled, run_bytes, fill)
        full = Signal()  # there is data for a row, or a beat of one
        room = Mux(permuted, permute.i.ready, writes.ready)
        end = loops.last.all()
        row_end = filled | ~space | (index == self._beats - 1)
        completes = completing & drained & target.idle & writes.ready
        m.d.comb += [
            full.eq((can_place & filled) | beat_sound),
            self.beat.ready.eq((read & room) | (sink & pending.valid & ~run.bad)),
            pending.ready.eq(ended | (sink & run.bad)),
            self.curtail.eq(completing & ~drained & self.newest),
            permute.i.valid.eq(full & permuted),
            permute.i.payload.row.eq(data),
            permute.i.payload.last.eq(loops.last[0]),
            permute.i.payload.tag.eq(loops.last[1:]),
            store.eq(full & room),
            row_done.eq(store & row_end),
            loops.step.eq(row_done),
        ]
        m.d.comb += [
            leave.eq((store & (row_end & end)) | completes),
            writes.payload.row.eq(target.position),
            writes.payload.space.eq(space & target.idle),
            writes.payload.beats.eq(Mux(filled, -1, 1) << index),
        ]
        with m.If(target.idle):
            m.d.comb += [
                writes.valid.eq(Mux(placing, full & ~permuted, completing & drained) & ~self.abort),
                writes.payload.write.eq(placing),
                writes.payload.done.eq(~placing | (end & row_end)),
                writes.payload.data.eq(data),
            ]
        with m.Else():
            m.d.comb += [
                writes.valid.eq(target.valid & ~self.abort),
                writes.payload.write.eq(target.write),
                writes.payload.done.eq(target.done),
                writes.payload.data.eq(permute.o.payload),
            ]

        # Within a run the beats come first, within a slab the runs with data.
        behind = padded | (ended & run.slab_end)
        m.d.sync += padded.eq(behind)
        with m.If(store):
            m.d.sync += [index.eq(index + 1), filled.eq(filled | ended)]
        with m.If(row_done):
            m.d.sync += index.eq(0)
            with m.If(loops.last[:2].all()):
                m.d.sync += [filled.eq(empty), padded.eq(0)]
            with m.Elif(loops.last[0]):
                m.d.sync += filled.eq(empty | behind)
        with m.If(pending.valid & pending.ready & run.final):
            m.d.sync += drained.eq(1)

        permutes = job.work & (job.interleave | job.transpose)
        same = permute.flags == Cat(job.interleave, job.transpose)
        passes = ~job.work & ~job.bad & ~job.illegal & ~target.idle
        admitted = target.idle | (target.ready & ((permutes & same) | passes))
        free = ~placing & ~completing
        flags = Signal(2, reset_less=True)
        n = exact_log2(c.array)
        mask = Cat(job.transpose.replicate(n), job.interleave & job.transpose)
        # Whether a row is stored is known last.
        offered = admitted & self.job.valid & ~self.abort
        if_stored, otherwise = row_end & end, free | completes
        m.d.comb += [
            follow.eq(permutes | passes),
            self.job.ready.eq((store & (if_stored & admitted)) | (otherwise & admitted) | self.abort),
            take.eq((store & (if_stored & offered)) | (otherwise & offered)),
            target.begin.eq((store & (if_stored & offered & ~follow)) | (otherwise & offered & ~follow)),
            target.follow.eq(take & follow),
            target.step.eq(row_done),
            target.last.eq(loops.last),
            target.permuted_valid.eq(permute.o.valid),
            target.permuted_last.eq(permute.last),
            target.permuted_tag.eq(permute.tag),
            target.permuted_idle.eq(permute.idle),
            permute.o.ready.eq(target.permuted_ready),
            target.dropped.eq(dropped),
            target.abort.eq(self.abort),
            target.clear.eq(self.clear),
            target.room.eq(writes.ready),
            permute.flags.eq(flags),
            loops.start.eq(take),
            loops.count_0.eq(chunks),
            loops.count_1.eq(job.runs[:17]),
            loops.count_2.eq(count2),
            loops.mask_1.eq(Mux(job.interleave & ~job.transpose, 1, mask)),
        ]
        with m.If(leave | self.abort):
            m.d.sync += state.eq(_State.IDLE)
        with m.If(take & permutes):
            m.d.sync += flags.eq(Cat(job.interleave, job.transpose))
        with m.If(take & ~passes):
            m.d.sync += [
                state.eq(Mux(job.work, _State.PLACE, _State.COMPLETE)),
                space.eq(job.space),
                empty.eq(job.empty),
                permuted.eq(permutes),
                drained.eq(job.empty | ~job.work),
                padded.eq(0),
                filled.eq(job.empty),
                index.eq(0),
            ]

        lost = target.astray & target.none & placing & permuted & ~leave  # the command that is being filled
        needs_run = ~filled & pending.valid
        bad_run = needs_run & run.bad
        fails = Signal()
        m.d.comb += [fails.eq(0), drops.eq(lost)]
        fault = self.fault
        m.d.sync += fault.valid.eq(0)
        outside = (target.valid & ~target.idle & target.outside) | (placing & row_outside & ~bad_run)
        self._record_fault(m, target, outside, placing & ~full, bad_run)
        with m.If(target.astray & ~self.abort):
            m.d.sync += fault.valid.eq(1)
            m.d.comb += fails.eq(lost)
        with m.Elif(placing & ~self.abort & fault_allowed):
            with m.If(bad_run | (move & error)):
                m.d.comb += [fails.eq(1), drops.eq(permuted)]
            with m.Elif((filled | needs_run) & row_outside):
                m.d.comb += fails.eq(1)
        with m.If(fails):
            m.d.sync += [fault.valid.eq(1), state.eq(_State.COMPLETE)]
        with m.If(take & ~passes & (job.illegal | job.bad)):
            m.d.sync += fault.valid.eq(1)
        m.d.comb += self.busy.eq(~free | ~target.idle)
        return m

    def _filled(self, beat: data.View, whole: Value, run_bytes: Value, fill: Value) -> Value:
        """A beat, with the fill value where the run has no bytes: all of it, or behind the run's end in its last beat.
        The run's bytes in its last beat are known before it comes."""
        size = self._config.bus_bytes
        tail = run_bytes[: exact_log2(size)]
        partial = beat.last & tail.any()
        parts = [
            Mux(whole | partial & (tail <= at), fill.word_select(at % 4, 8), beat.data.word_select(at, 8))
            for at in range(size)
        ]
        return Cat(parts)

    def _record_fault(self, m: Module, target: LoadTarget, outside: Value, of_run: Value, bad_run: Value) -> None:
        """Of a row outside of its memory, of a run or its beats, or of a command that cannot be executed. It means
        nothing while ``fault`` is not valid, so its parts need not wait for that."""
        with m.If(outside):
            m.d.sync += [
                self.fault.code.eq(FaultCode.LOCAL_ADDRESS),
                self.fault.pc.eq(target.pc),
                self.fault.address.eq(target.position),
            ]
        with m.Elif(of_run):
            m.d.sync += [
                self.fault.code.eq(Mux(bad_run, FaultCode.BAD_ADDRESS, fault_code(self.beat.payload.error))),
                self.fault.pc.eq(target.pc),
                self.fault.address.eq(self.pending.payload.addr),
            ]
        with m.Else():
            m.d.sync += [
                self.fault.code.eq(
                    Mux(self.job.payload.illegal, FaultCode.ILLEGAL_INSTRUCTION, FaultCode.BAD_PARAMETER)
                ),
                self.fault.pc.eq(self.target.payload.pc),
                self.fault.address.eq(self.target.payload.row),
            ]
