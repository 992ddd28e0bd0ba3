"""The load unit: DMA from memory into the scratchpad and the accumulators."""

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from amaranth import Cat, Const, Module, Mux, ResetInserter, Signal, Value, signed, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import (
    INTERLEAVE_CHUNKS,
    PARAMS,
    SEMAPHORES,
    TRANSPOSE_CHUNKS,
    Op,
    Param,
    Share,
    Space,
)
from sley.hw.core.affine import Loops, Positions, ends_beyond
from sley.hw.core.params import UnitParams, flag_bits
from sley.hw.core.permute import Permute, interleaves, row_loops, unit_runs
from sley.hw.core.sram import write_port
from sley.hw.core.unit import unit_signature
from sley.hw.memory.access import fault_code
from sley.hw.memory.run import RUN_BYTES_BITS, Run, beat
from sley.hw.noc.messages import SHARE_BITS
from sley.hw.stream.buffer import StreamBuffer
from sley.hw.stream.fifo import StreamFIFO

COMMANDS_IN_FLIGHT = 16
"""Commands accepted and not finished, SET included, that always fit."""
RUNS_IN_FLIGHT = 64
"""Runs requested and not placed that always fit: hides a round trip of 64 cycles for runs of one beat."""


FEED = data.StructLayout(
    {
        "space": 1,
        "work": 1,  # it writes rows; otherwise it only completes
        "illegal": 1,  # it completes with ILLEGAL_INSTRUCTION
        "bad": 1,  # it completes with BAD_PARAMETER
        "interleave": 1,
        "transpose": 1,
        "empty": 1,  # its runs have no bytes: no requests, all zeros
        "chunks": 1,  # a SET, of CHUNKS
        "count2": 1,
        "runs": 17,  # with the runs of zeros, without those that fill the last unit; or a SET's value
    }
)
"""A command, as far as it says what rows are made of."""
TARGET = data.StructLayout(
    {
        "pc": 16,
        "space": 1,
        "work": 1,
        "interleave": 1,
        "chunk_stride": 1,  # a SET, of CHUNK_STRIDE
        "local_stride": 1,
        "local_stride2": 1,
        "row": 32,  # the first one; a SET's value; or the address of the fault
    }
)
"""The same command, as far as it says where its rows go."""
PENDING = data.StructLayout(
    {
        "addr": 32,
        "bad": 1,
        "slab_end": 1,  # the last one of its slab that has data
        "final": 1,  # the last one of its command
    }
)
"""A run that was requested; or, if ``bad``, one that was not, and after which nothing of its command is."""


FOLLOWERS = 9
"""Commands that may wait until the rows before theirs have left ``Permute``."""
FED = (Param.CHUNKS, Param.COUNT2)
AIMED = (Param.CHUNK_STRIDE, Param.LOCAL_STRIDE, Param.LOCAL_STRIDE2)


class _State(enum.Enum):
    IDLE = 0
    PLACE = 1
    COMPLETE = 2  # takes what is left of a command at fault, then hands over its completion


@dataclass(frozen=True)
class _Target:
    """What the target tells."""

    position: Value
    outside: Value  # the position does not exist
    pc: Value  # of its command
    idle: Value  # it is in step with the feed
    valid: Value  # otherwise: a permuted row, or a command without rows that passed
    write: Value
    done: Value
    astray: Value  # a row of a command does not exist: the rest of it is dropped
    newest: Value  # no other command follows
    ready: Value  # one may
    settled: Value  # nor is a complete unit behind


class LoadUnit(wiring.Component):
    """Reads runs of bytes from memory and places them in local rows, padded with zeros.

    For each of COUNT2 slabs and each of rc + PAD_RUNS runs, CHUNKS rows are written, the first RUN_BYTES of them with
    bytes from memory (in the first rc runs), the rest with zeros. Each beat and each row of zeros is one write. Where
    MEM_STRIDE is RUN_BYTES, a bus beat that runs of a slab share is read once.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    command, signal, fault, busy, retired, abort, clear
        As in ``unit_signature``. Ops other than SET and LOAD must not come.
    gang : In(1)
        The block is of a gang: loads may be shared.
    run : Out(stream of Run), beat : In(stream of beat(config))
        To and from a reader of memory. Beats are always taken in the end, without help of the semaphores.
    scratchpad, accumulator : Out(write_port(...))
        One granule of the accumulators is one beat.

    Faults, in the order of the runs, and in each run in this order: BAD_PARAMETER (rc above 65535, with rc; RUN_BYTES
    above CHUNKS rows, with RUN_BYTES; a bad SET, with its parameter); BAD_ADDRESS, with the run's address;
    LOCAL_ADDRESS, with the row; BUS_ERROR, PAGE_FAULT or PERMISSION,
    with the run's address. Rows before the fault are written, later ones are
    not; of a run with a bus error, the beats before it are written.

    Three engines: the request side asks for the runs of up to COMMANDS_IN_FLIGHT commands ahead of the others; the
    feed takes the beats and counts rows; the target walks the local rows, in step with the feed or, behind rows that
    are permuted, a unit or two later. Each executes the SETs of what it needs, when their turn comes in its queue. All
    faults are raised in order.

    Latency: 2 cycles from the acceptance of a command to its first run, 1 from a beat to its write, 1 from the last
    granted write to the signal. Throughput: one run, and one beat or row of zeros, a cycle, without gaps between
    commands. Cost: two walkers, four queues (16 x 26, 16 x 54, 64 x 35, 16 x 16 bits), three stream registers.
    """

    command: stream.Interface
    signal: list[stream.Interface]
    fault: data.View
    busy: Signal
    retired: Signal
    abort: Signal
    clear: Signal
    gang: Signal
    run: stream.Interface
    beat: stream.Interface
    scratchpad: Any
    accumulator: Any

    def __init__(self, config: ChipConfig) -> None:
        self._config = c = config
        self._beats = c.beats_per_accumulator_row
        super().__init__(
            {
                **unit_signature().members,
                "gang": In(1),
                "run": Out(stream.Signature(Run)),
                "beat": In(stream.Signature(beat(c))),
                "scratchpad": Out(write_port(c.scratchpad_rows, 8 * c.row_bytes, c.lane_elements)),
                "accumulator": Out(write_port(c.accumulator_rows, 8 * c.accumulator_row_bytes, self._beats)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = max(self._config.scratchpad_rows, self._config.accumulator_rows)
        placed = data.StructLayout(
            {
                "write": 1,  # otherwise it only completes a command
                "done": 1,  # the last one of its command
                "space": 1,
                "row": range(rows),
                "beats": self._beats,  # of an accumulator row
                "data": 8 * self._config.bus_bytes,
            }
        )
        m.submodules.signals = signals = StreamFIFO(SEMAPHORES, COMMANDS_IN_FLIGHT)
        m.submodules.feeds = feeds = StreamFIFO(FEED, COMMANDS_IN_FLIGHT)
        m.submodules.targets = targets = StreamFIFO(TARGET, COMMANDS_IN_FLIGHT)
        m.submodules.pending = pending = StreamFIFO(PENDING, RUNS_IN_FLIGHT)
        m.submodules.placed = writes = StreamBuffer(placed)
        # A queue this deep is block RAM, which answers late: what is decided by its output needs a register in between.
        m.submodules.oldest = oldest = StreamBuffer(PENDING)
        wiring.connect(m, pending.o, oldest.i)
        curtail = Signal()  # the command in the request engine is at fault

        requesting = self._request(m, signals.i, feeds.i, targets.i, pending.i, curtail)
        placing = self._place(m, feeds, targets.o, oldest.o, writes.i, curtail)
        self._write(m, writes.o, signals.o)
        empty = signals.empty & feeds.empty & pending.empty & ~oldest.o.valid
        m.d.comb += self.busy.eq(requesting | placing | ~empty | writes.o.valid)
        return m

    def _request(self, m: Module, signals: Any, feeds: Any, targets: Any, pending: Any, curtail: Signal) -> Signal:
        """Takes commands, checks them and asks for their runs. Returns whether one is in progress."""
        c = self._config
        command = self.command.payload
        m.submodules.params = params = UnitParams(Unit.LOAD)
        p = params.values
        space = command.flags[flag_bits(Op.LOAD, "space")]
        is_set = command.op == Op.SET
        many = command.c[16:].any()
        nothing = (command.c == 0) | (p.count2 == 0)
        interleave = command.flags[flag_bits(Op.LOAD, "interleave")]
        transpose = command.flags[flag_bits(Op.LOAD, "transpose")]
        illegal = ~is_set & ~many & ((interleave | transpose) & space.any() | (interleave & (not interleaves(c))))
        wide = self._is_above(p.chunks, INTERLEAVE_CHUNKS) & interleave
        wide |= self._is_above(p.chunks, TRANSPOSE_CHUNKS) & transpose
        wide |= self._is_above(p.chunks, TRANSPOSE_CHUNKS >> 1) & interleave & transpose
        # Chunks of so many bytes hold any run: what a shift pushes out beyond RUN_BYTES need not be compared.
        sizes = [exact_log2(size) for size in (c.row_bytes, c.accumulator_row_bytes)]
        room = Mux(space, *((p.chunks << size)[:RUN_BYTES_BITS] for size in reversed(sizes)))
        ample = Mux(space, *((p.chunks << size)[RUN_BYTES_BITS:].any() for size in reversed(sizes)))
        long = (p.run_bytes > room) & ~ample
        set_bad = is_set & params.bad
        param = command.flags[flag_bits(Op.SET, "param")]
        feed, target = feeds.payload, targets.payload
        active = Signal()
        ends = Signal()
        take = Signal()
        # Queues of parts of a command are never fuller than that of its signals, which leave last.
        m.d.comb += [
            self.command.ready.eq(self.abort | ((~active | ends) & signals.ready)),
            take.eq(self.command.valid & self.command.ready & ~self.abort),
            signals.valid.eq(take),
            signals.payload.eq(command.signal),
            feeds.valid.eq(take),
            feed.space.eq(space),
            feed.work.eq(~is_set & ~illegal & ~many & ~nothing & ~long & ~wide & (p.chunks != 0)),
            feed.illegal.eq(illegal),
            feed.bad.eq(Mux(is_set, params.bad, many | (~nothing & (long | wide)))),
            feed.interleave.eq(interleave),
            feed.transpose.eq(transpose),
            feed.empty.eq(p.run_bytes == 0),
            feed.runs.eq(Mux(is_set, command.a[:16], command.c[:16] + p.pad_runs)),
            targets.valid.eq(take),
            target.pc.eq(command.pc),
            target.space.eq(space),
            target.work.eq(feed.work),
            target.interleave.eq(interleave),
        ]
        for payload, names in ((feed, FED), (target, AIMED)):
            m.d.comb += [payload[n.name.lower()].eq(is_set & ~params.bad & (param == n)) for n in names]
        rows: list[Any] = []
        sound = Signal()
        m.d.comb += sound.eq(~is_set & ~many & ~illegal & ~long & ~wide)
        for use, value in (
            (sound, command.b),
            (~is_set & many, command.c),
            (~is_set & ~many & ~illegal & long, p.run_bytes),
            (~is_set & ~many & ~illegal & ~long & wide, p.chunks),
            (set_bad, param),
            (is_set & ~params.bad, command.a[:16]),
        ):
            rows.append(Mux(use, value, 0))
        m.d.comb += [
            target.row.eq(reduce(or_, rows)),
            params.param.eq(param),
            params.value.eq(command.a),
            params.set.eq(take & is_set),
            params.clear.eq(self.clear | self.abort),
        ]

        # No SET comes before a walk's end, so the strides stay where they are.
        m.submodules.loops = loops = Loops((16, 16))
        m.submodules.addresses = walk = Positions(2, limits=(1 << 32,), stride_bits=32)
        end = loops.last.all()
        m.submodules.run = run = StreamBuffer(Run)
        wiring.connect(m, run.o, wiring.flipped(self.run))
        length = Signal(RUN_BYTES_BITS, reset_less=True)
        contiguous = Signal(reset_less=True)
        joins = Signal(reset_less=True)
        starts = take & feed.work & ~feed.empty
        bad = Signal()
        running = active & ~self.abort
        m.d.comb += [
            walk.start.eq(starts),
            walk.base.eq(command.a),
            walk.last.eq(loops.last),
            loops.start.eq(starts),
            loops.count_0.eq(command.c),
            loops.count_1.eq(p.count2),
            walk.strides[0].eq(p.mem_stride),
            walk.strides[1].eq(p.mem_stride2),
            bad.eq(curtail | ends_beyond(walk.position, length, c.addr_bits)),
            run.i.valid.eq(running & pending.ready & ~bad),
            run.i.payload.addr.eq(walk.position),
            run.i.payload.bytes.eq(length),
            run.i.payload.more.eq(contiguous & ~loops.last[0]),
            run.i.payload.joins.eq(joins),
            pending.valid.eq(running & run.i.ready),
            pending.payload.addr.eq(walk.position),
            pending.payload.bad.eq(bad),
            pending.payload.slab_end.eq(loops.last[0]),
            pending.payload.final.eq(bad | end),
            walk.step.eq(pending.valid & pending.ready),
            loops.step.eq(walk.step),
            ends.eq(walk.step & end),
        ]
        with m.If(walk.step):
            m.d.sync += joins.eq(1)
        with m.If(ends | (walk.step & bad) | self.abort):
            m.d.sync += active.eq(0)
        with m.If(starts):
            m.d.sync += [active.eq(1), length.eq(p.run_bytes), contiguous.eq(p.mem_stride == p.run_bytes), joins.eq(0)]
        if c.cores > 1:
            share = Signal(SHARE_BITS, reset_less=True)
            m.d.comb += run.i.payload.share.eq(share)
            with m.If(starts):
                m.d.sync += share.eq(Mux(self.gang, command.flags[flag_bits(Op.LOAD, "share")], Share.NONE))
        return active

    @staticmethod
    def _is_above(value: Any, power: int) -> Any:
        """Whether a value is larger than a power of two, without a carry chain."""
        bit = exact_log2(power)
        return value[bit + 1 :].any() | (value[bit] & value[:bit].any())

    def _place(self, m: Module, feeds: StreamFIFO, targets: Any, pending: Any, writes: Any, curtail: Signal) -> Any:
        """Makes rows of the beats, sends them where they belong, and finds the faults. Returns whether a command is in
        progress.

        Rows that are permuted go through ``permute``, and the target follows what leaves it. Commands that have
        nothing to permute wait until it is empty; those without rows pass, and the target completes them.
        """
        c = self._config
        m.submodules.counts = loops = Loops((16, 17, 16), {1: unit_runs(c)[-1 if interleaves(c) else -2]})
        chunks, count2 = self._registers(m, FED, feeds.o, feeds.o.payload.runs)
        permute = Permute(c)
        dropped = Signal()  # the command at fault was permuted
        m.submodules.permute = ResetInserter(dropped | self.abort)(permute)
        state = Signal(_State)
        job = feeds.o.payload
        space = Signal(reset_less=True)
        empty = Signal(reset_less=True)
        permuted = Signal(reset_less=True)
        drained = Signal(reset_less=True)  # no beat of this command is still to come
        padded = Signal(reset_less=True)  # the runs with data of this slab are behind
        zeros = Signal(reset_less=True)  # the rest of this run is zeros
        index = Signal(range(self._beats), reset_less=True)  # of the next beat in an accumulator row

        placing, completing = state
        store = Signal()
        row_done = Signal()
        leave = Signal()
        take = Signal()
        follow = Signal()  # the target takes this command when it gets there
        target = self._target(m, targets, permute, take & ~follow, take & follow, row_done, loops.last, writes, dropped)
        run = pending.payload
        stray = target.outside & ~permuted
        ripe = ~permuted | target.settled  # all rows before this one have been placed or are on the way
        error = self.beat.valid & self.beat.payload.error.any()
        able = placing & ~stray
        # A beat is what the row needs.
        wants = able & ~zeros & pending.valid & ~run.bad
        read = wants & (ripe | ~error)
        sink = completing & ~drained | self.abort
        move = self.beat.valid & self.beat.ready
        ended = move & self.beat.payload.last
        sound = wants & self.beat.valid & ~self.beat.payload.error.any()
        data = Mux(zeros, 0, self.beat.payload.data)
        full = Signal()  # there is data for a row, or a beat of one
        room = Mux(permuted, permute.i.ready, writes.ready)
        end = loops.last.all()
        row_end = zeros | ~space | (index == self._beats - 1)
        m.d.comb += [
            full.eq(((able & zeros) | sound) & ~self.abort),
            self.beat.ready.eq((read & room) | (sink & pending.valid & ~run.bad)),
            pending.ready.eq(ended | (sink & run.bad)),
            curtail.eq(completing & ~drained & feeds.empty),
            permute.i.valid.eq(full & permuted),
            permute.i.payload.row.eq(data),
            permute.i.payload.chunks.eq(chunks),
            permute.i.payload.tag.eq(loops.last[1:]),
            store.eq(full & room),
            row_done.eq(store & row_end),
            loops.step.eq(row_done),
        ]
        m.d.comb += [
            leave.eq((store & (row_end & end)) | (completing & drained & ~self.abort & writes.ready)),
            writes.payload.row.eq(target.position),
            writes.payload.space.eq(space & target.idle),
            writes.payload.beats.eq(Mux(zeros, -1, 1) << index),
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
            m.d.sync += [index.eq(index + 1), zeros.eq(zeros | ended)]
        with m.If(row_done):
            m.d.sync += index.eq(0)
            with m.If(loops.last[:2].all()):
                m.d.sync += [zeros.eq(empty), padded.eq(0)]
            with m.Elif(loops.last[0]):
                m.d.sync += zeros.eq(empty | behind)
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
        m.d.comb += [
            feeds.o.ready.eq(((free | leave) & admitted) | self.abort),
            take.eq((free | leave) & (admitted & feeds.o.valid & ~self.abort)),
            follow.eq(permutes | passes),
            permute.flags.eq(flags),
            loops.start.eq(take),
            loops.count_0.eq(chunks),
            loops.count_1.eq(job.runs),
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
                zeros.eq(job.empty),
                index.eq(0),
            ]

        lost = target.astray & target.newest & placing & permuted & ~leave  # the command that is being filled
        needs_run = ~zeros & pending.valid
        bad_run = needs_run & run.bad
        fails = Signal()
        m.d.comb += [fails.eq(0), dropped.eq(lost)]
        fault = self.fault
        m.d.sync += fault.valid.eq(0)
        # The record means nothing while ``fault`` is not valid, so its parts need not wait for that.
        with m.If((target.valid & ~target.idle & target.outside) | (placing & stray & ~bad_run)):
            m.d.sync += [
                fault.code.eq(FaultCode.LOCAL_ADDRESS),
                fault.pc.eq(target.pc),
                fault.address.eq(target.position),
            ]
        with m.Elif(placing & ~full):
            m.d.sync += [
                fault.code.eq(Mux(bad_run, FaultCode.BAD_ADDRESS, fault_code(self.beat.payload.error))),
                fault.pc.eq(target.pc),
                fault.address.eq(run.addr),
            ]
        with m.Else():
            m.d.sync += [
                fault.code.eq(Mux(job.illegal, FaultCode.ILLEGAL_INSTRUCTION, FaultCode.BAD_PARAMETER)),
                fault.pc.eq(targets.payload.pc),
                fault.address.eq(targets.payload.row),
            ]
        with m.If(target.astray & ~self.abort):
            m.d.sync += fault.valid.eq(1)
            m.d.comb += fails.eq(lost)
        with m.Elif(placing & ~self.abort & ripe):
            with m.If(bad_run | (move & error)):
                m.d.comb += [fails.eq(1), dropped.eq(1)]
            with m.Elif((zeros | needs_run) & stray):
                m.d.comb += fails.eq(1)
        with m.If(fails):
            m.d.sync += [fault.valid.eq(1), state.eq(_State.COMPLETE)]
        with m.If(take & ~passes & (job.illegal | job.bad)):
            m.d.sync += fault.valid.eq(1)
        return ~free | ~target.idle

    def _registers(self, m: Module, names: tuple[Param, ...], commands: Any, value: Any) -> list[Signal]:
        """The parameters that a queue's reader needs, as of the command that it has."""
        made = []
        for name in names:
            info = PARAMS[name]
            shape = signed(info.width) if info.signed else unsigned(info.width)
            register = Signal(shape, init=info.reset, name=f"{name.name.lower()}", reset_less=True)
            with m.If(commands.valid & commands.ready & commands.payload[name.name.lower()]):
                m.d.sync += register.eq(value)
            with m.If(self.clear | self.abort):
                m.d.sync += register.eq(info.reset)
            made.append(register)
        return made

    def _target(
        self,
        m: Module,
        targets: Any,
        permute: Permute,
        begin: Any,
        follow: Any,
        step: Any,
        last: Any,
        writes: Any,
        dropped: Signal,
    ) -> "_Target":
        """Walks the local rows: of a command that begins now, in ``step``s of the feed with its ``last``; of those
        that are to ``follow``, with the rows that leave ``permute``, one command after the other."""
        c = self._config
        loops = row_loops(c)
        limits = (c.scratchpad_rows, c.accumulator_rows)
        dims, stride_bits = loops + 2, 17 if interleaves(c) else 16
        m.submodules.rows = walk = Positions(dims, limits=limits, stride_bits=stride_bits)
        chunk_stride, local_stride, local_stride2 = self._registers(m, AIMED, targets, targets.payload.row[:16])
        job = targets.payload
        pc = Signal(16, reset_less=True)
        interleave = Signal(reset_less=True)
        work = Signal(reset_less=True)
        active = Signal()  # a command that followed is here
        dropping = Signal(reset_less=True)
        followed = Signal()
        waiting = Signal(range(FOLLOWERS + 1))  # commands that are to follow
        idle = Signal(init=1)  # nothing follows, nor did in the cycle before
        valid = active & (~work | permute.o.valid)
        permuted_last = Cat(permute.last, permute.tag)
        done = ~work | permuted_last.all()
        finish = valid & writes.ready & done
        start = (waiting != 0) & (~active | finish)
        moves = active & work & permute.o.valid & writes.ready
        astray = moves & walk.outside & ~dropping
        none = (waiting == 0) & ~followed
        m.d.sync += [followed.eq(follow), waiting.eq(waiting + followed - start)]
        m.d.sync += idle.eq(none & ~active & permute.idle & ~follow)
        strides = (
            chunk_stride << interleave if loops == 3 else chunk_stride,
            *((chunk_stride,) if loops == 3 else ()),
            1,
            local_stride,
            local_stride2,
        )
        m.d.comb += [
            targets.ready.eq(begin | start | self.abort),
            walk.start.eq(begin | start),
            walk.base.eq(job.row),
            walk.space.eq(job.space),
            walk.step.eq(Mux(idle, step, moves)),
            walk.last.eq(Mux(idle, Cat(last[0], Const(-1, loops - 1), last[1:]), permuted_last)),
            permute.o.ready.eq(active & work & writes.ready),
        ]
        m.d.comb += [stride.eq(value) for stride, value in zip(walk.strides, strides, strict=True)]
        with m.If(finish):
            m.d.sync += active.eq(0)
        with m.If(astray):
            m.d.sync += dropping.eq(1)
        with m.If(start):
            m.d.sync += [active.eq(1), dropping.eq(0)]
        with m.If(begin | start):
            m.d.sync += [work.eq(job.work), pc.eq(job.pc), interleave.eq(job.interleave)]
        with m.If(dropped | self.abort):
            m.d.sync += [active.eq(0), followed.eq(0), waiting.eq(0), idle.eq(1)]
        return _Target(
            position=walk.position,
            outside=walk.outside,
            pc=pc,
            idle=idle,
            valid=valid,
            write=work & ~walk.outside & ~dropping,
            done=done,
            astray=astray,
            newest=none,
            ready=(waiting != FOLLOWERS) & ~((waiting == FOLLOWERS - 1) & followed),
            settled=none & ~permute.complete,
        )

    def _write(self, m: Module, writes: Any, signals: Any) -> None:
        """Writes to the memories; counts commands that have finished, and offers their signal sets."""
        item = writes.payload
        scratchpad, accumulator = self.scratchpad, self.accumulator
        wanted = writes.valid & item.write
        m.d.comb += [
            scratchpad.valid.eq(wanted & (item.space == Space.SCRATCHPAD)),
            scratchpad.row.eq(item.row),
            scratchpad.data.eq(item.data),
            scratchpad.enable.eq(-1),
            accumulator.valid.eq(wanted & (item.space == Space.ACCUMULATOR)),
            accumulator.row.eq(item.row),
            accumulator.data.eq(item.data.replicate(self._beats)),
            accumulator.enable.eq(item.beats),
            writes.ready.eq(~item.write | Mux(item.space, accumulator.ready, scratchpad.ready)),
        ]
        finished = Signal(range(COMMANDS_IN_FLIGHT + 2))
        signal = self.signal[0]
        m.d.comb += [
            signal.valid.eq((finished != 0) & ~self.abort),
            signal.payload.eq(signals.payload),
            signals.ready.eq((signal.valid & signal.ready) | self.abort),
            self.retired.eq(signal.valid & signal.ready),
        ]
        m.d.sync += finished.eq(finished + (writes.valid & writes.ready & item.done) - self.retired)
        with m.If(self.abort):
            m.d.sync += finished.eq(0)
