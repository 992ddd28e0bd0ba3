"""The engine that executes MATMUL: scratchpad rows to the west edge of the array."""

from amaranth import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.instructions import PARAMS, SEMAPHORES, Param
from sley.hw.core.accumulate import HAZARD_SLOTS, issue_slot
from sley.hw.core.affine import AffineWalk
from sley.hw.core.array import lanes
from sley.hw.core.sram import READ_LATENCY, read_port
from sley.hw.core.unit import Fault
from sley.hw.core.weights import ORDER_BITS

STRIDE_BITS = PARAMS[Param.ACT_STRIDE].width
COUNT_BITS = PARAMS[Param.ACT_COUNT].width
ROWS_BITS = 16


def matmul_job(config: ChipConfig) -> data.StructLayout:
    """A MATMUL for the streamer.

    ``void``: no rows, only complete. ``swap``: its first row makes the spare weights active, and waits until ``loads``,
    the count of weight loads handed out before it, are done. ``tail``: it accumulates and its first row is one of
    the last few that the MATMUL before it writes.
    """
    return data.StructLayout(
        {
            "row": 32,
            "strides": data.ArrayLayout(signed(STRIDE_BITS), 3),
            "counts": data.ArrayLayout(COUNT_BITS, 2),
            "rows": ROWS_BITS,
            "dest": range(config.accumulator_rows),
            "accumulate": 1,
            "void": 1,
            "swap": 1,
            "loads": ORDER_BITS,
            "tail": 1,
            "signal": SEMAPHORES,
            "pc": 16,
        }
    )


class ActivationStreamer(wiring.Component):
    """Reads activation rows by an affine walk and sends them through the array, one a cycle.

    A MATMUL holds the array for its rows, and for HAZARD_SLOTS cycles at least; one marked ``tail`` starts at least
    HAZARD_SLOTS cycles after the last row before it. That keeps every accumulator row that is read clear of the
    pipeline that writes it: for two MATMULs to rows x and x + d the distance of shared rows is the first one's length
    less d.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    i : In(stream of matmul_job(config))
        One job waits while one runs; between them no cycle is lost.
    read : Out(read_port)
        Of the scratchpad. A cycle without a grant is a cycle without a row.
    activations : Out(lanes(config)), activations_swap : Out(1)
        To the array, READ_LATENCY cycles after the grant.
    slot : Out(issue_slot(config))
        What was granted, in that cycle.
    loads : In(ORDER_BITS)
        Count of weight loads whose rows have all been read, in earlier cycles.
    swap : Out(1), swaps : Out(ORDER_BITS)
        A row that swaps is granted in this cycle; the count of those of earlier cycles.
    quiet : Out(1)
        Nothing runs, or what runs waits for weights.
    signal : Out(stream of SEMAPHORES bits)
        The signal set of each MATMUL as it starts, which waits for that.
    fault : Out(Fault)
    idle : Out(1)
        No job is here; rows may still be in the array.

    Cost: address generator and job registers, about 400 bits.
    """

    i: stream.Interface
    read: wiring.PureInterface
    activations: data.View
    activations_swap: Signal
    slot: data.View
    loads: Signal
    swap: Signal
    swaps: Signal
    quiet: Signal
    signal: stream.Interface
    fault: data.View
    idle: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(matmul_job(config))),
                "read": Out(read_port(config.scratchpad_rows, 8 * config.row_bytes)),
                "activations": Out(lanes(config)),
                "activations_swap": Out(1),
                "slot": Out(issue_slot(config)),
                "loads": In(ORDER_BITS),
                "swap": Out(1),
                "swaps": Out(ORDER_BITS),
                "quiet": Out(1),
                "signal": Out(stream.Signature(SEMAPHORES)),
                "fault": Out(Fault),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        # A count of 0 means all rows: more than there can be.
        m.submodules.walk = walk = AffineWalk(
            3, limits=(config.scratchpad_rows,), stride_bits=STRIDE_BITS, count_bits=COUNT_BITS + 1
        )
        following = Signal(matmul_job(config), reset_less=True)
        waiting = Signal()
        active = Signal()
        void = Signal(reset_less=True)
        swap = Signal(reset_less=True)
        loads = Signal(ORDER_BITS, reset_less=True)
        tail = Signal(reset_less=True)
        accumulate = Signal(reset_less=True)
        dest = Signal(range(config.accumulator_rows), reset_less=True)
        left = Signal(ROWS_BITS, reset_less=True)
        pc = Signal(16, reset_less=True)
        first = Signal(reset_less=True)  # no row granted yet
        final = Signal(reset_less=True)  # left == 1
        padding = Signal(reset_less=True)  # all rows granted, but not HAZARD_SLOTS cycles ago
        finish = Signal()

        m.d.comb += [
            self.i.ready.eq(~waiting),
            self.idle.eq(~active & ~waiting),
            walk.base.eq(following.row),
            walk.counts[2].eq(1 << COUNT_BITS),
            self.signal.payload.eq(following.signal),
        ]
        m.d.comb += [walk.strides[k].eq(following.strides[k]) for k in range(3)]
        for k in range(2):
            count = following.counts[k]
            m.d.comb += [walk.counts[k][:COUNT_BITS].eq(count), walk.counts[k][COUNT_BITS].eq(count == 0)]

        slots = Signal(range(HAZARD_SLOTS))  # cycles that the MATMUL must still last, but for the present one
        since = Signal(range(HAZARD_SLOTS))  # cycles until the last row granted is HAZARD_SLOTS ago
        unloaded = swap & (loads != self.loads)
        running = active & ~void & ~padding & (~first | (~unloaded & ~(tail & (since != 0))))
        grant = Signal()
        fail = Signal()
        stop = Signal()
        m.d.comb += [
            self.read.row.eq(walk.position),
            self.read.valid.eq(running & ~walk.outside),
            grant.eq(self.read.valid & self.read.ready),
            walk.step.eq(grant),
            fail.eq(running & walk.outside),
            stop.eq(fail | (active & void)),
            finish.eq(stop | (grant & final & ~first & (slots == 0)) | (active & padding & (slots == 0))),
            self.swap.eq((grant | fail) & first & swap),
            self.quiet.eq((active & ~void & first & unloaded) | self.idle),
            self.slot.row.eq(grant),
            self.slot.last.eq((grant & final) | stop),
            self.slot.dest.eq(dest),
            self.slot.accumulate.eq(accumulate),
            self.fault.valid.eq(fail),
            self.fault.code.eq(FaultCode.LOCAL_ADDRESS),
            self.fault.pc.eq(pc),
            self.fault.address.eq(walk.position),
        ]
        with m.If(slots != 0):
            m.d.sync += slots.eq(slots - 1)
        with m.If(since != 0):
            m.d.sync += since.eq(since - 1)
        with m.If(grant):
            m.d.sync += [
                first.eq(0),
                dest.eq(dest + 1),
                left.eq(left - 1),
                final.eq(left == 2),
                since.eq(HAZARD_SLOTS - 1),
            ]
            with m.If(first):
                m.d.sync += slots.eq(HAZARD_SLOTS - 2)
            with m.If(final & ~finish):
                m.d.sync += padding.eq(1)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [following.eq(self.i.payload), waiting.eq(1)]
        # After the updates on a grant: the first cycle of a job follows the last grant of the one before.
        with m.If(~active | finish):
            m.d.comb += [self.signal.valid.eq(waiting), walk.start.eq(waiting & self.signal.ready)]
            m.d.sync += active.eq(walk.start)
            with m.If(walk.start):
                m.d.sync += [
                    waiting.eq(0),
                    void.eq(following.void),
                    swap.eq(following.swap),
                    loads.eq(following.loads),
                    tail.eq(following.tail),
                    accumulate.eq(following.accumulate),
                    dest.eq(following.dest),
                    left.eq(following.rows),
                    pc.eq(following.pc),
                    first.eq(1),
                    final.eq(following.rows == 1),
                    padding.eq(0),
                ]
        m.d.sync += self.swaps.eq(self.swaps + self.swap)

        entering: Signal = grant & first & swap
        for i in range(READ_LATENCY):
            later = Signal(name=f"swap{i}")
            m.d.sync += later.eq(entering)
            entering = later
        m.d.comb += [self.activations.eq(self.read.data), self.activations_swap.eq(entering)]
        return m
