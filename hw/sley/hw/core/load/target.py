"""Where the rows of loads go: the walk of local rows."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import PC_BITS
from sley.hw.core.affine import Positions
from sley.hw.core.load.permute import interleaves, row_loops
from sley.hw.core.load.queues import TARGET, TARGET_PARAMS, params_of
from sley.hw.core.load.transposer import TAG_BITS

FOLLOWERS = 9
"""Commands that may wait until the rows before theirs have left ``Permute``."""


class LoadTarget(wiring.Component):
    """Walks the local rows of one command after the other: in step with the feed, or with the rows that leave
    ``Permute`` for the commands that are to follow it.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    job : In(stream of TARGET)
        Commands, in the order of the feed. It executes their SETs.
    begin, follow : In(1)
        The feed begins the next command: it is in step with the feed, or is to follow.
    step : In(1), last : In(3)
        A row of the feed is placed, and which of the feed's loops are at their last index.
    permuted_valid : In(1), permuted_last : In(row_loops(config)), permuted_tag : In(TAG_BITS), permuted_idle : In(1)
        What ``Permute`` says of the row that leaves it.
    permuted_ready : Out(1)
        That row is placed.
    dropped, abort, clear : In(1)
        Whatever follows is given up; with ``abort`` or ``clear`` the parameters take their reset values, too.
    room : In(1)
        A row may be placed.
    position : Out(32), outside : Out(1)
        Of the next row, and whether it does not exist.
    pc : Out(16)
        Of its command.
    idle : Out(1)
        It is in step with the feed.
    valid, write, done : Out(1)
        If it is not: there is a permuted row, or a command without rows that passed; it is written; its command ends.
    astray : Out(1)
        A row that follows does not exist: the rest of its command is dropped.
    none, ready : Out(1)
        No other command is to follow; one may.

    Latency
    -------
    1 cycle from ``begin`` to the first position.

    Throughput
    ----------
    A row a cycle, also from command to command.

    Cost
    ----
    The strides and a walk of rows.
    """

    job: stream.Interface
    begin: Signal
    follow: Signal
    step: Signal
    last: Signal
    permuted_valid: Signal
    permuted_last: Signal
    permuted_tag: Signal
    permuted_idle: Signal
    permuted_ready: Signal
    dropped: Signal
    abort: Signal
    clear: Signal
    room: Signal
    position: Signal
    outside: Signal
    pc: Signal
    idle: Signal
    valid: Signal
    write: Signal
    done: Signal
    astray: Signal
    none: Signal
    ready: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "job": In(stream.Signature(TARGET)),
                "begin": In(1),
                "follow": In(1),
                "step": In(1),
                "last": In(3),
                "permuted_valid": In(1),
                "permuted_last": In(row_loops(config)),
                "permuted_tag": In(TAG_BITS),
                "permuted_idle": In(1),
                "permuted_ready": Out(1),
                "dropped": In(1),
                "abort": In(1),
                "clear": In(1),
                "room": In(1),
                "position": Out(32),
                "outside": Out(1),
                "pc": Out(PC_BITS),
                "idle": Out(1, init=1),
                "valid": Out(1),
                "write": Out(1),
                "done": Out(1),
                "astray": Out(1),
                "none": Out(1),
                "ready": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        loops = row_loops(c)
        limits = (c.scratchpad_rows, c.accumulator_rows)
        dims, stride_bits = loops + 2, 17 if interleaves(c) else 16
        m.submodules.rows = walk = Positions(dims, limits=limits, stride_bits=stride_bits)
        job = self.job.payload
        clear = self.clear | self.abort
        chunk_stride, local_stride, local_stride2 = params_of(m, TARGET_PARAMS, self.job, job.row[:16], clear)
        interleave = Signal(reset_less=True)
        work = Signal(reset_less=True)
        active = Signal()  # a command that followed is here
        dropping = Signal(reset_less=True)
        followed = Signal()
        waiting = Signal(range(FOLLOWERS + 1))  # commands that are to follow
        idle = self.idle  # nothing follows, nor did in the cycle before
        valid = active & (~work | self.permuted_valid)
        permuted_last = Cat(self.permuted_last, self.permuted_tag)
        done = ~work | permuted_last.all()
        finish = valid & self.room & done
        start = (waiting != 0) & (~active | finish)
        moves = active & work & self.permuted_valid & self.room
        astray = moves & walk.outside & ~dropping
        none = (waiting == 0) & ~followed
        m.d.sync += [followed.eq(self.follow), waiting.eq(waiting + followed - start)]
        m.d.sync += idle.eq(none & ~active & self.permuted_idle & ~self.follow)
        strides = (
            chunk_stride << interleave if loops == 3 else chunk_stride,
            *((chunk_stride,) if loops == 3 else ()),
            1,
            local_stride,
            local_stride2,
        )
        m.d.comb += [
            self.job.ready.eq(self.begin | start | self.abort),
            walk.start.eq(self.begin | start),
            walk.base.eq(job.row),
            walk.space.eq(job.space),
            walk.step.eq(Mux(idle, self.step, moves)),
            walk.last.eq(Mux(idle, Cat(self.last[0], Const(-1, loops - 1), self.last[1:]), permuted_last)),
            self.permuted_ready.eq(active & work & self.room),
        ]
        m.d.comb += [stride.eq(value) for stride, value in zip(walk.strides, strides, strict=True)]
        with m.If(finish):
            m.d.sync += active.eq(0)
        with m.If(astray):
            m.d.sync += dropping.eq(1)
        with m.If(start):
            m.d.sync += [active.eq(1), dropping.eq(0)]
        with m.If(self.begin | start):
            m.d.sync += [work.eq(job.work), self.pc.eq(job.pc), interleave.eq(job.interleave)]
        with m.If(self.dropped | self.abort):
            m.d.sync += [active.eq(0), followed.eq(0), waiting.eq(0), idle.eq(1)]
        m.d.comb += [
            self.position.eq(walk.position),
            self.outside.eq(walk.outside),
            self.valid.eq(valid),
            self.write.eq(work & ~walk.outside & ~dropping),
            self.done.eq(done),
            self.astray.eq(astray),
            self.none.eq(none),
            self.ready.eq((waiting != FOLLOWERS) & ~((waiting == FOLLOWERS - 1) & followed)),
        ]
        return m
