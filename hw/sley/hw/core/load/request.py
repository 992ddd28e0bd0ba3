"""The request side of the load unit: takes commands, checks them, and asks for their runs."""

from functools import reduce
from operator import or_

from amaranth import Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import INTERLEAVE_CHUNKS, SEMAPHORES, TRANSPOSE_CHUNKS, Op, Share
from sley.hw.core.affine import Loops, Positions, ends_beyond
from sley.hw.core.list_addresses import list_beyond, list_port, run_address
from sley.hw.core.load.permute import interleaves
from sley.hw.core.load.queues import FEED, FEED_PARAMS, PENDING, TARGET, TARGET_PARAMS
from sley.hw.core.params import UnitParams, flag_bits
from sley.hw.core.unit import UnitCommand
from sley.hw.memory.run import RUN_BYTES_BITS, Run
from sley.hw.noc.messages import SHARE_BITS
from sley.hw.stream.buffer import StreamBuffer


class LoadRequest(wiring.Component):
    """Executes SET, checks LOAD, and asks for one run a cycle, ahead of those that place the data.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    command : In(stream of UnitCommand), abort : In(1), clear : In(1)
        As of ``unit_signature``.
    gang : In(1)
        The block is of a gang: loads may be shared.
    signal : Out(stream of SEMAPHORES bits), feed : Out(stream of FEED), target : Out(stream of TARGET)
        Parts of each command, in the cycle of its acceptance. Only ``signal`` may be refused: the others have room
        as long as it has.
    run : Out(stream of Run)
        To a reader of memory.
    pending : Out(stream of PENDING)
        Each run in the cycle before it is on ``run``, and the one that ends a command because it is bad.
    list_read : Out(read_port(...))
        One lane of an accumulator row, a word of a list; on chips with ``gather``.
    curtail : In(1)
        The command at hand is at fault: of its runs, no other one is asked for.
    active : Out(1)
        A command is at hand whose runs have not all been asked for.

    Latency
    -------
    2 cycles from the acceptance of a command to its first run, LIST_LATENCY + 1 by a list.

    Throughput
    ----------
    A run, or a command without runs, a cycle.

    Cost
    ----
    The parameters, a walk of addresses, a stream register; with ``gather`` ``ListAddresses``.
    """

    command: stream.Interface
    abort: Signal
    clear: Signal
    gang: Signal
    signal: stream.Interface
    feed: stream.Interface
    target: stream.Interface
    run: stream.Interface
    pending: stream.Interface
    curtail: Signal
    active: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "command": In(stream.Signature(UnitCommand)),
                "abort": In(1),
                "clear": In(1),
                "gang": In(1),
                "signal": Out(stream.Signature(SEMAPHORES)),
                "feed": Out(stream.Signature(FEED)),
                "target": Out(stream.Signature(TARGET)),
                "run": Out(stream.Signature(Run)),
                "pending": Out(stream.Signature(PENDING)),
                "curtail": In(1),
                "active": Out(1),
                **list_port(config),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        command = self.command.payload
        m.submodules.params = params = UnitParams(Unit.LOAD, c)
        p = params.values
        space = command.flags[flag_bits(Op.LOAD, "space")]
        is_set = command.op == Op.SET
        too_many = command.c[16:].any()
        nothing = (command.c == 0) | (p.count2 == 0)
        interleave = command.flags[flag_bits(Op.LOAD, "interleave")]
        transpose = command.flags[flag_bits(Op.LOAD, "transpose")]
        illegal = ~is_set & ~too_many & ((interleave | transpose) & space.any() | (interleave & (not interleaves(c))))
        too_wide = self._is_above(p.chunks, INTERLEAVE_CHUNKS) & interleave
        too_wide |= self._is_above(p.chunks, TRANSPOSE_CHUNKS) & transpose
        too_wide |= self._is_above(p.chunks, TRANSPOSE_CHUNKS >> 1) & interleave & transpose
        # Chunks of so many bytes hold any run: what a shift pushes out beyond RUN_BYTES need not be compared.
        sizes = [exact_log2(size) for size in (c.row_bytes, c.accumulator_row_bytes)]
        room = Mux(space, *((p.chunks << size)[:RUN_BYTES_BITS] for size in reversed(sizes)))
        ample_room = Mux(space, *((p.chunks << size)[RUN_BYTES_BITS:].any() for size in reversed(sizes)))
        too_long = (p.run_bytes > room) & ~ample_room
        by_list = command.flags[flag_bits(Op.LOAD, "by_list")] & c.gather
        too_far: Value = Const(0, 1)  # the list, beyond the accumulators
        if c.gather:
            too_far = by_list & p.run_bytes.any() & list_beyond(c, p.list_row, command.c)
        set_bad = is_set & params.bad
        param = command.flags[flag_bits(Op.SET, "param")]
        feed, target, pending = self.feed.payload, self.target.payload, self.pending
        begun = Signal()  # a command is at hand, if it has runs
        has_runs = Signal(reset_less=True)
        active = self.active
        free = Signal()
        take = Signal()
        # No SET comes before a walk's end, so the strides stay where they are.
        m.submodules.loops = loops = Loops((16, 16))
        m.submodules.addresses = walk = Positions(2, limits=(1 << 32,), stride_bits=32)
        end = loops.last.all()
        m.submodules.run = run = StreamBuffer(Run)
        moments = {"take": take, "by_list": by_list, "working": active, "step": walk.step}
        address, known = run_address(m, c, self, p, walk.position, **moments)
        m.d.comb += [
            free.eq((~active | (end & known & run.i.ready & pending.ready)) & self.signal.ready),
            self.command.ready.eq(free | self.abort),
            take.eq(self.command.valid & free & ~self.abort),
            self.signal.valid.eq(take),
            self.signal.payload.eq(command.signal),
            self.feed.valid.eq(take),
            feed.space.eq(space),
            feed.work.eq(
                ~is_set & ~illegal & ~too_many & ~nothing & ~too_long & ~too_wide & ~too_far & (p.chunks != 0)
            ),
            feed.illegal.eq(illegal),
            feed.bad.eq(Mux(is_set, params.bad, too_many | (~nothing & (too_long | too_wide | too_far)))),
            feed.interleave.eq(interleave),
            feed.transpose.eq(transpose),
            feed.empty.eq(p.run_bytes == 0),
            feed.runs.eq(Mux(is_set, command.a, command.c[:16] + p.pad_runs)),
            self.target.valid.eq(take),
            target.pc.eq(command.pc),
            target.space.eq(space),
            target.work.eq(feed.work),
            target.interleave.eq(interleave),
        ]
        for payload, names in ((feed, FEED_PARAMS), (target, TARGET_PARAMS)):
            m.d.comb += [payload[n.name.lower()].eq(is_set & ~params.bad & (param == n)) for n in names]
        rows: list[Value] = []
        legal = Signal()
        m.d.comb += legal.eq(~is_set & ~too_many & ~illegal & ~too_long & ~too_wide & ~too_far)
        for use, value in (
            (legal, command.b),
            (~is_set & too_many, command.c),
            (~is_set & ~too_many & ~illegal & too_long, p.run_bytes),
            (~is_set & ~too_many & ~illegal & ~too_long & too_wide, p.chunks),
            *([(~is_set & ~too_many & ~illegal & ~too_long & ~too_wide & too_far, p.list_row)] if c.gather else []),
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

        wiring.connect(m, run.o, wiring.flipped(self.run))
        length = Signal(RUN_BYTES_BITS, reset_less=True)
        last_byte = Signal(RUN_BYTES_BITS, reset_less=True)  # by 1 than the length
        contiguous = Signal(reset_less=True)
        joins = Signal(reset_less=True)
        bad = Signal()
        running = active & known & ~self.abort
        m.d.comb += [
            active.eq(begun & has_runs),
            walk.start.eq(take),
            walk.base.eq(command.a),
            walk.last.eq(loops.last),
            loops.start.eq(take),
            loops.count_0.eq(command.c),
            loops.count_1.eq(p.count2),
            walk.strides[0].eq(p.mem_stride),
            walk.strides[1].eq(p.mem_stride2),
            bad.eq(self.curtail | ends_beyond(address, last_byte, c.addr_bits)),
            run.i.valid.eq(running & pending.ready & ~bad),
            run.i.payload.addr.eq(address),
            run.i.payload.bytes.eq(length),
            run.i.payload.more.eq(contiguous & ~loops.last[0]),
            run.i.payload.joins.eq(joins),
            pending.valid.eq(running & run.i.ready),
            pending.payload.addr.eq(address),
            pending.payload.bad.eq(bad),
            pending.payload.slab_end.eq(loops.last[0]),
            pending.payload.final.eq(bad | end),
            walk.step.eq(pending.valid & pending.ready),
            loops.step.eq(walk.step),
        ]
        with m.If(walk.step):
            m.d.sync += joins.eq(1)
        with m.If((walk.step & (end | bad)) | self.abort):
            m.d.sync += begun.eq(0)
        # Whether a command has runs is known late, so whatever only they need is taken of any.
        with m.If(take):
            m.d.sync += [
                begun.eq(1),
                has_runs.eq(feed.work & ~feed.empty),
                length.eq(p.run_bytes),
                last_byte.eq(p.run_bytes - 1),
                contiguous.eq((p.mem_stride == p.run_bytes) & ~by_list),
                joins.eq(0),
            ]
        if c.cores > 1:
            share = Signal(SHARE_BITS, reset_less=True)
            m.d.comb += run.i.payload.share.eq(share)
            with m.If(take):
                m.d.sync += share.eq(Mux(self.gang, command.flags[flag_bits(Op.LOAD, "share")], Share.NONE))
        return m

    @staticmethod
    def _is_above(value: Value, power: int) -> Value:
        """Whether a value is larger than a power of two, without a carry chain."""
        bit = exact_log2(power)
        return value[bit + 1 :].any() | (value[bit] & value[:bit].any())
