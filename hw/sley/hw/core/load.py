"""The load unit: DMA from memory into the scratchpad and the accumulators."""

from typing import Any

from amaranth import Array, Cat, Module, Mux, ResetInserter, Signal, signed
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode, Unit
from sley.abi.instructions import INTERLEAVE_CHUNKS, SEMAPHORES, TRANSPOSE_CHUNKS, Op, Share, Space
from sley.hw.core.affine import AffineWalk
from sley.hw.core.params import UnitParams, flag_bits
from sley.hw.core.permute import Permute, interleaves, unit_runs
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


JOB = data.StructLayout(
    {
        "pc": 16,
        "space": 1,
        "work": 1,  # it writes rows; otherwise it only completes
        "illegal": 1,  # it completes with ILLEGAL_INSTRUCTION
        "bad": 1,  # it completes with BAD_PARAMETER, and ``row`` is the address of the fault
        "interleave": 1,
        "transpose": 1,
        "empty": 1,  # its runs have no bytes: no requests, all zeros
        "row": 32,
        "chunks": 17,
        "runs": 18,  # with the runs of zeros, whole units
        "slabs": 17,
        "chunk_stride": signed(16),
        "run_stride": signed(16),
        "slab_stride": signed(16),
    }
)
"""A command on its way from the request side to the placement side."""
PENDING = data.StructLayout(
    {
        "addr": 32,
        "bad": 1,
        "slab_end": 1,  # the last one of its slab that has data
        "final": 1,  # the last one of its command
    }
)
"""A run that was requested; or, if ``bad``, one that was not, and after which nothing of its command is."""


class _State(enum.Enum):
    IDLE = 0
    PLACE = 1
    COMPLETE = 2  # takes what is left of a command at fault, then hands over its completion


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

    Two engines: the request side executes SET and asks for the runs of up to COMMANDS_IN_FLIGHT commands ahead of the
    placement side, which walks the rows, takes the beats, and raises all faults in order.

    Latency: 2 cycles from the acceptance of a command to its first run, 1 from a beat to its write, 1 from the last
    granted write to the signal. Throughput: one run, and one beat or row of zeros, a cycle, without gaps between
    commands. Cost: two walkers, three queues (16 x 155, 64 x 35, 16 x 16 bits), three stream registers.
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
        m.submodules.jobs = jobs = StreamFIFO(JOB, COMMANDS_IN_FLIGHT)
        m.submodules.pending = pending = StreamFIFO(PENDING, RUNS_IN_FLIGHT)
        m.submodules.placed = writes = StreamBuffer(placed)
        # A queue this deep is block RAM, which answers late: what is decided by its output needs a register in between.
        m.submodules.oldest = oldest = StreamBuffer(PENDING)
        wiring.connect(m, pending.o, oldest.i)
        curtail = Signal()  # the command in the request engine is at fault

        requesting = self._request(m, signals.i, jobs.i, pending.i, curtail)
        placing = self._place(m, jobs, oldest.o, writes.i, curtail)
        self._write(m, writes.o, signals.o)
        empty = signals.empty & jobs.empty & pending.empty & ~oldest.o.valid
        m.d.comb += self.busy.eq(requesting | placing | ~empty | writes.o.valid)
        return m

    def _request(self, m: Module, signals: Any, jobs: Any, pending: Any, curtail: Signal) -> Signal:
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
        few = Mux(transpose, TRANSPOSE_CHUNKS >> interleave, Mux(interleave, INTERLEAVE_CHUNKS, (1 << 16) - 1))
        row_bytes = {Space.SCRATCHPAD: c.row_bytes, Space.ACCUMULATOR: c.accumulator_row_bytes}
        room = Mux(space, *(p.chunks << exact_log2(row_bytes[s]) for s in (Space.ACCUMULATOR, Space.SCRATCHPAD)))
        long = p.run_bytes > room
        wide = p.chunks > few
        total = command.c[:16] + p.pad_runs
        whole = Array((total + (1 << log2) - 1) >> log2 << log2 for log2 in unit_runs(c))
        job = jobs.payload
        active = Signal()
        ends = Signal()
        take = Signal()
        m.d.comb += [
            self.command.ready.eq(self.abort | ((~active | ends) & signals.ready & jobs.ready)),
            take.eq(self.command.valid & self.command.ready & ~self.abort),
            signals.valid.eq(take),
            signals.payload.eq(command.signal),
            jobs.valid.eq(take),
            job.pc.eq(command.pc),
            job.space.eq(space),
            job.work.eq(~is_set & ~illegal & ~many & ~nothing & ~long & ~wide & (p.chunks != 0)),
            job.illegal.eq(illegal),
            job.bad.eq(Mux(is_set, params.bad, many | (~nothing & (long | wide)))),
            job.interleave.eq(interleave),
            job.transpose.eq(transpose),
            job.empty.eq(p.run_bytes == 0),
            job.row.eq(
                Mux(
                    job.bad,
                    Mux(is_set, params.param, Mux(many, command.c, Mux(long, p.run_bytes, p.chunks))),
                    command.b,
                )
            ),
            job.chunks.eq(p.chunks),
            job.runs.eq(whole[Cat(interleave, transpose)]),
            job.slabs.eq(p.count2),
            job.chunk_stride.eq(p.chunk_stride),
            job.run_stride.eq(p.local_stride),
            job.slab_stride.eq(p.local_stride2),
            params.param.eq(command.flags[flag_bits(Op.SET, "param")]),
            params.value.eq(command.a),
            params.set.eq(take & is_set),
            params.clear.eq(self.clear | self.abort),
        ]

        m.submodules.addresses = walk = AffineWalk(2, limits=(1 << 32,), stride_bits=32, count_bits=16)
        m.submodules.run = run = StreamBuffer(Run)
        wiring.connect(m, run.o, wiring.flipped(self.run))
        length = Signal(RUN_BYTES_BITS, reset_less=True)
        contiguous = Signal(reset_less=True)
        joins = Signal(reset_less=True)
        starts = take & job.work & ~job.empty
        bad = Signal()
        running = active & ~self.abort
        m.d.comb += [
            walk.start.eq(starts),
            walk.base.eq(command.a),
            walk.counts[0].eq(command.c),
            walk.counts[1].eq(p.count2),
            walk.strides[0].eq(p.mem_stride),
            walk.strides[1].eq(p.mem_stride2),
            bad.eq(curtail | (walk.position + length > 1 << c.addr_bits)),
            run.i.valid.eq(running & pending.ready & ~bad),
            run.i.payload.addr.eq(walk.position),
            run.i.payload.bytes.eq(length),
            run.i.payload.more.eq(contiguous & ~walk.last[0]),
            run.i.payload.joins.eq(joins),
            pending.valid.eq(running & run.i.ready),
            pending.payload.addr.eq(walk.position),
            pending.payload.bad.eq(bad),
            pending.payload.slab_end.eq(walk.last[0]),
            pending.payload.final.eq(bad | walk.end),
            walk.step.eq(pending.valid & pending.ready),
            ends.eq(walk.step & walk.end),
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

    def _place(self, m: Module, jobs: StreamFIFO, pending: Any, writes: Any, curtail: Signal) -> Any:
        """Walks the rows, fills them from the beats, and finds the faults. Returns whether a command is in progress.

        Rows that are permuted go through ``permute``, whose walk knows where they belong. Commands that have nothing to
        permute wait until it is empty, or pass through it as jobs without rows.
        """
        c = self._config
        limits = (c.scratchpad_rows, c.accumulator_rows)
        m.submodules.rows = walk = AffineWalk(3, limits=limits, stride_bits=16, count_bits=18)
        permute = Permute(c)
        dropped = Signal()  # the command at fault was permuted
        m.submodules.permute = ResetInserter(dropped | self.abort)(permute)
        state = Signal(_State)
        job = jobs.o.payload
        pc = Signal(16, reset_less=True)
        space = Signal(reset_less=True)
        empty = Signal(reset_less=True)
        permuted = Signal(reset_less=True)
        drained = Signal(reset_less=True)  # no beat of this command is still to come
        padded = Signal(reset_less=True)  # the runs with data of this slab are behind
        zeros = Signal(reset_less=True)  # the rest of this run is zeros
        index = Signal(range(self._beats), reset_less=True)  # of the next beat in an accumulator row

        placing = state == _State.PLACE
        run = pending.payload
        ripe = ~permuted | permute.settled  # all rows before this one have been placed or are on the way
        error = self.beat.valid & self.beat.payload.error.any()
        # A beat is what the row needs.
        read = placing & ~zeros & pending.valid & ~run.bad & ~walk.outside & (ripe | ~error)
        sink = (state == _State.COMPLETE) & ~drained | self.abort
        move = self.beat.valid & self.beat.ready
        ended = move & self.beat.payload.last
        fill = placing & zeros & ~walk.outside
        data = Mux(zeros, 0, self.beat.payload.data)
        full = Signal()  # there is data for a row, or a beat of one
        room = Mux(permuted, permute.i.ready, writes.ready)
        store = Signal()
        row_done = Signal()
        leave = Signal()
        take = Signal()
        last = walk.end & (zeros | ~space | (index == self._beats - 1))
        m.d.comb += [
            full.eq((fill | (read & self.beat.valid & ~error)) & ~self.abort),
            self.beat.ready.eq((read & room) | (sink & pending.valid & ~run.bad)),
            pending.ready.eq(ended | (sink & run.bad)),
            curtail.eq((state == _State.COMPLETE) & ~drained & jobs.empty),
            permute.i.valid.eq(full & permuted),
            permute.i.payload.eq(data),
            permute.o.ready.eq(writes.ready),
            store.eq(full & room),
            row_done.eq(store & (zeros | ~space | (index == self._beats - 1))),
            walk.step.eq(row_done),
        ]
        with m.If(placing):
            m.d.comb += leave.eq(row_done & walk.end)
        with m.Elif(state == _State.COMPLETE):
            m.d.comb += leave.eq(drained & ~self.abort & writes.ready)
        with m.If(permute.idle):
            m.d.comb += [
                writes.valid.eq(Mux(placing, full & ~permuted, (state == _State.COMPLETE) & drained) & ~self.abort),
                writes.payload.write.eq(placing),
                writes.payload.done.eq(~placing | last),
                writes.payload.space.eq(space),
                writes.payload.row.eq(walk.position),
                writes.payload.data.eq(data),
                writes.payload.beats.eq(Mux(zeros, -1, 1) << index),
            ]
        with m.Else():
            m.d.comb += [
                writes.valid.eq(permute.o.valid & ~self.abort),
                writes.payload.write.eq(permute.o.payload.write),
                writes.payload.done.eq(permute.o.payload.done),
                writes.payload.row.eq(permute.o.payload.row),
                writes.payload.data.eq(permute.o.payload.data),
            ]

        # Within a run the beats come first, within a slab the runs with data.
        behind = padded | (ended & run.slab_end)
        m.d.sync += padded.eq(behind)
        with m.If(store):
            m.d.sync += [index.eq(index + 1), zeros.eq(zeros | ended)]
        with m.If(row_done):
            m.d.sync += index.eq(0)
            with m.If(walk.last[:2].all()):
                m.d.sync += [zeros.eq(empty), padded.eq(0)]
            with m.Elif(walk.last[0]):
                m.d.sync += zeros.eq(empty | behind)
        with m.If(pending.valid & pending.ready & run.final):
            m.d.sync += drained.eq(1)

        m.d.sync += self.fault.valid.eq(0)
        lost = Signal()  # a permuted row of the command that is being filled does not exist
        m.d.comb += [lost.eq(permute.outside & permute.last & placing & permuted & ~leave), dropped.eq(lost)]
        with m.If(permute.outside & ~self.abort):
            self._fail(m, None, FaultCode.LOCAL_ADDRESS, permute.pc, permute.row)
            with m.If(lost):
                m.d.sync += state.eq(_State.COMPLETE)
        with m.Elif(placing & ~self.abort & ripe):
            needs_run = ~zeros & pending.valid
            with m.If(needs_run & run.bad):
                self._fail(m, state, FaultCode.BAD_ADDRESS, pc, run.addr)
                m.d.comb += dropped.eq(1)
            with m.Elif((zeros | needs_run) & walk.outside):
                self._fail(m, state, FaultCode.LOCAL_ADDRESS, pc, walk.position)
            with m.Elif(move & error):
                self._fail(m, state, fault_code(self.beat.payload.error), pc, run.addr)
                m.d.comb += dropped.eq(1)

        permutes = job.work & (job.interleave | job.transpose)
        same = permute.flags == Cat(job.interleave, job.transpose)
        passes = ~job.work & ~job.bad & ~job.illegal & ~permute.idle
        admitted = permute.idle | (permute.job.ready & ((permutes & same) | passes))
        m.d.comb += [
            jobs.o.ready.eq((((state == _State.IDLE) | leave) & admitted) | self.abort),
            take.eq(jobs.o.valid & jobs.o.ready & ~self.abort),
            walk.start.eq(take),
            walk.base.eq(Mux(permutes, 0, job.row)),
            walk.space.eq(job.space),
            permute.job.valid.eq(take & (permutes | passes)),
            permute.job.payload.work.eq(permutes),
            permute.job.payload.units.eq(
                Array(job.runs >> log2 for log2 in unit_runs(c))[Cat(job.interleave, job.transpose)]
            ),
        ]
        for name in ("pc", "interleave", "transpose", "row", "chunks", "slabs", "chunk_stride", "slab_stride"):
            m.d.comb += permute.job.payload[name].eq(job[name])
        m.d.comb += permute.job.payload.unit_stride.eq(job.run_stride)
        for k, name in enumerate(("chunk", "run", "slab")):
            m.d.comb += [
                walk.counts[k].eq(job[f"{name}s"]),
                walk.strides[k].eq(Mux(permutes, 0, job[f"{name}_stride"])),
            ]
        with m.If(leave | self.abort):
            m.d.sync += state.eq(_State.IDLE)
        with m.If(take & ~passes):
            m.d.sync += [
                state.eq(Mux(job.work, _State.PLACE, _State.COMPLETE)),
                pc.eq(job.pc),
                space.eq(job.space),
                empty.eq(job.empty),
                permuted.eq(permutes),
                drained.eq(job.empty | ~job.work),
                padded.eq(0),
                zeros.eq(job.empty),
                index.eq(0),
            ]
            with m.If(job.illegal):
                self._fail(m, None, FaultCode.ILLEGAL_INSTRUCTION, job.pc, 0)
            with m.Elif(job.bad):
                self._fail(m, None, FaultCode.BAD_PARAMETER, job.pc, job.row)
        return (state != _State.IDLE) | ~permute.idle

    def _fail(self, m: Module, state: Any, code: Any, pc: Any, address: Any) -> None:
        m.d.sync += [
            self.fault.valid.eq(1),
            self.fault.code.eq(code),
            self.fault.pc.eq(pc),
            self.fault.address.eq(address),
        ]
        if state is not None:
            m.d.sync += state.eq(_State.COMPLETE)

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
