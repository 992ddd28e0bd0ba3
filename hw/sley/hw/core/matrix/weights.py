"""The engine that executes WEIGHTS: scratchpad rows to the spare weights of the array."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import PC_BITS, FaultCode
from sley.abi.instructions import SEMAPHORES
from sley.abi.parameters import PARAMS, Param
from sley.abi.timing import SRAM_READ
from sley.abi.types import ElementType
from sley.hw.core.matrix.row_walk import RowWalk
from sley.hw.core.matrix.rows import lanes
from sley.hw.core.sram.memories import scratchpad_read
from sley.hw.core.unit import Fault

NEUTRAL_BF16 = 0x8000
"""-0: with an activation of +0 its product is -0, and x + -0 is x for every x. The neutral word of int8 is 0."""

ORDER_BITS = 2
"""Width of the counts of WEIGHTS and of swaps by which the two engines of the matrix unit keep program order. At most
two of a kind are handed out and not done, so counts modulo 4 tell all cases apart."""


def weights_job(config: ChipConfig) -> data.StructLayout:
    """A WEIGHTS for the loader.

    ``rows``: scratchpad rows to read, 1 to N; the array rows behind them get neutral words of the type. ``void``: do
    nothing but complete. ``swaps``: the count of swaps handed out before it, all of which must have entered the array
    before its first word may.
    """
    return data.StructLayout(
        {
            "row": 32,
            "stride": signed(PARAMS[Param.WEIGHT_STRIDE].width),
            "rows": range(config.array + 1),
            "bf16": 1,
            "void": 1,
            "swaps": ORDER_BITS,
            "signal": SEMAPHORES,
            "pc": PC_BITS,
        }
    )


class WeightLoader(wiring.Component):
    """Feeds the array's load path with a tile: first the scratchpad rows of the job, then, if they are fewer than N,
    neutral words: of int8 a single one, for the rest of the array.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    i : In(stream of weights_job(config))
        One job waits while one runs; no cycle is lost between them.
    read : Out(read_port)
        Of the scratchpad; waits for grants.
    weights : Out(lanes(config)), weights_valid : Out(1), weights_row : Out(range(N)), weights_rest : Out(1)
        To the array, SRAM_READ cycles after the grant of a word's row, or after its turn if it is neutral.
    weights_bf16 : Out(1)
        The word is of bf16; likewise.
    turn_bf16 : Out(1)
        A word of bf16 has its turn.
    settled : In(1)
        Words of int8 may have their turn.
    swap : In(1), swaps : In(ORDER_BITS)
        High in the cycle in which a row that swaps is granted, and the count of those of earlier cycles. The first row
        of a job is read in the cycle of the last swap before it, or later: activations and weights reach the array
        equally late, so the array's rules hold for the grants as they do for the words.
    loaded : Out(1)
        All words of a job have had their turn with this cycle; never for void ones.
    quiet : In(1)
        No MATMUL before the running job can fault any more. A fault comes one cycle later, or more.
    signal : Out(stream of SEMAPHORES bits)
        The signal sets of complete jobs: their rows have been read. The last read of a job waits while the set of the
        job before it was not taken.
    fault : Out(Fault)
        As of ``unit_signature``.
    idle : Out(1)
        No job is here, apart from a set on ``signal``.

    Throughput
    ----------
    With every read granted a job takes a cycle for each word.

    Cost
    ----
    The walk and two jobs, about 300 bits.
    """

    i: stream.Interface
    read: wiring.PureInterface
    weights: data.View
    weights_valid: Signal
    weights_row: Signal
    weights_rest: Signal
    weights_bf16: Signal
    turn_bf16: Signal
    settled: Signal
    swap: Signal
    swaps: Signal
    loaded: Signal
    quiet: Signal
    signal: stream.Interface
    fault: data.View
    idle: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(weights_job(config))),
                "read": Out(scratchpad_read(config)),
                "weights": Out(lanes(config)),
                "weights_valid": Out(1),
                "weights_row": Out(range(config.array)),
                "weights_rest": Out(1),
                "weights_bf16": Out(1),
                "turn_bf16": Out(1),
                "settled": In(1),
                "swap": In(1),
                "swaps": In(ORDER_BITS),
                "loaded": Out(1),
                "quiet": In(1),
                "signal": Out(stream.Signature(SEMAPHORES)),
                "fault": Out(Fault),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self._config.array
        layout = weights_job(self._config)
        m.submodules.walk = walk = RowWalk(
            self._config.scratchpad_rows,
            dims=1,
            stride_bits=PARAMS[Param.WEIGHT_STRIDE].width,
            count_bits=1,
            rows_bits=n.bit_length(),
        )
        following = Signal(layout, reset_less=True)
        single = Signal(reset_less=True)  # it has one row
        waiting = Signal()
        job = Signal(layout, reset_less=True)
        bf16 = self._config.has(ElementType.BF16)
        neutral = Signal(range(n if bf16 else 2))  # words without a row that a job still has to send
        row = walk.o.payload
        m.d.comb += [
            self.i.ready.eq(~waiting),
            self.idle.eq(~waiting & ~walk.o.valid & (neutral == 0)),
            walk.i.valid.eq(waiting),
            walk.i.payload.base.eq(following.row),
            walk.i.payload.strides[0].eq(following.stride),
            walk.i.payload.rows.eq(following.rows),
            walk.i.payload.single.eq(single),
            walk.i.payload.void.eq(following.void),
        ]
        with m.If(~waiting):
            m.d.sync += [following.eq(self.i.payload), waiting.eq(self.i.valid)]
            m.d.sync += single.eq(self.i.payload.void | (self.i.payload.rows == 1))
        with m.If(walk.i.ready):
            m.d.sync += [job.eq(following), waiting.eq(0)]

        # Whether the swaps before a job are done, or but for one, is found a cycle ahead. Rows behind the first go on.
        done = Signal(reset_less=True)
        one_left = Signal(reset_less=True)
        before = [(swaps - self.swaps)[:ORDER_BITS] for swaps in (following.swaps, job.swaps)]
        none, one = ([Mux(self.swap, count == k + 1, count == k) for count in before] for k in range(2))
        m.d.sync += [
            done.eq(Mux(walk.i.ready, none[0], none[1] | ~row.first | walk.o.ready)),
            one_left.eq(Mux(walk.i.ready, *one)),
        ]
        free = (neutral == 0) & (~row.first | job.bf16 | self.settled)
        go = free & (done | (one_left & self.swap))
        grant = Signal()
        fail = Signal()  # a register: nobody who waits for a grant waits for ``quiet``
        void = Signal()
        finish = Signal()
        m.d.comb += [
            self.read.row.eq(row.position),
            self.read.valid.eq(walk.inside & ~(row.final & self.signal.valid) & go),
            grant.eq(self.read.valid & self.read.ready),
            void.eq(walk.o.valid & job.void & ~self.signal.valid),
            walk.o.ready.eq(grant | fail | void),
            walk.skip.eq(row.outside),
            finish.eq((grant & row.final) | fail | void),
            self.fault.valid.eq(fail),
            self.fault.code.eq(FaultCode.LOCAL_ADDRESS),
            self.fault.pc.eq(job.pc),
            self.fault.address.eq(row.position),
        ]
        failing = walk.o.valid & row.outside & ~job.void & ~self.signal.valid & ~fail
        m.d.sync += fail.eq(failing & go & self.quiet)
        with m.If(self.signal.ready):
            m.d.sync += self.signal.valid.eq(0)
        with m.If(finish):
            m.d.sync += [self.signal.valid.eq(1), self.signal.payload.eq(job.signal)]
        with m.If(neutral != 0):
            m.d.sync += neutral.eq(neutral - 1)
        with m.Elif(grant & row.final):
            m.d.sync += neutral.eq(Mux(job.bf16 & bf16, n - job.rows, job.rows != n))
        m.d.comb += self.loaded.eq(fail | (grant & row.final & (job.rows == n)) | (neutral == 1))

        index = Signal(range(n), reset_less=True)  # of the word behind the last one
        last_bf16 = Signal(reset_less=True)  # the type of the last word
        turn = Signal(data.StructLayout({"valid": 1, "neutral": 1, "row": range(n), "bf16": 1}))
        m.d.comb += [
            turn.valid.eq(grant | (neutral != 0)),
            turn.neutral.eq(neutral != 0),
            turn.row.eq(Mux(grant & row.first, 0, index)),
            turn.bf16.eq(Mux(grant, job.bf16, last_bf16)),
            self.turn_bf16.eq(turn.valid & turn.bf16),
        ]
        with m.If(turn.valid):
            m.d.sync += [index.eq(turn.row + 1), last_bf16.eq(turn.bf16)]
        for i in range(SRAM_READ):
            later = Signal.like(turn, name=f"turn{i}")
            m.d.sync += later.eq(turn)
            turn = later
        m.d.comb += [
            self.weights_valid.eq(turn.valid),
            self.weights_row.eq(turn.row),
            self.weights_rest.eq(turn.neutral & ~turn.bf16),
            self.weights_bf16.eq(turn.bf16),
            self.weights.eq(self.read.data),
        ]
        with m.If(turn.neutral):
            for lane in self.weights:
                m.d.comb += lane.eq(Mux(turn.bf16, NEUTRAL_BF16, 0))
        return m
