"""The engine that executes WEIGHTS: scratchpad rows to the spare weights of the array."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import FaultCode
from sley.abi.instructions import PARAMS, SEMAPHORES, Param
from sley.hw.core.array import lanes
from sley.hw.core.row_walk import RowWalk
from sley.hw.core.sram import READ_LATENCY, read_port
from sley.hw.core.unit import Fault

ORDER_BITS = 2
"""Width of the counts of WEIGHTS and of swaps by which the two engines of the matrix unit keep program order. At most
two of a kind are handed out and not done, so counts modulo 4 tell all cases apart."""


WEIGHTS_JOB = data.StructLayout(
    {
        "row": 32,
        "stride": signed(PARAMS[Param.WEIGHT_STRIDE].width),
        "half": 1,
        "void": 1,
        "swaps": ORDER_BITS,
        "signal": SEMAPHORES,
        "pc": 16,
    }
)
"""A WEIGHTS for the loader. ``void``: do nothing but complete. ``swaps``: the count of swaps handed out before it, all
of which must have entered the array before its first word may."""


class WeightLoader(wiring.Component):
    """Reads ``fold_depth`` scratchpad rows and feeds the array's load path with N words.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    i : In(stream of WEIGHTS_JOB)
        One job waits while one runs; no cycle is lost between them.
    read : Out(read_port)
        Of the scratchpad; waits for grants.
    weights : Out(lanes(config)), weights_valid : Out(1), weights_first : Out(1)
        To the array, READ_LATENCY cycles after the grant of a word's last row.
    swap : In(1), swaps : In(ORDER_BITS)
        High in the cycle in which a row that swaps is granted, and the count of those of earlier cycles. The first row
        of a job is read in the cycle of the last swap before it, or later: activations and weights reach the array
        equally late, so the array's rules hold for the grants as they do for the words.
    loads : Out(ORDER_BITS)
        Count of the jobs whose rows have all been read; void ones do not count.
    quiet : In(1)
        No MATMUL before the running job can fault any more. A fault waits for this.
    signal : Out(stream of SEMAPHORES bits)
        The signal sets of complete jobs: their rows have been read. The last read of a job waits while the set of the
        job before it was not taken.
    fault : Out(Fault)
    idle : Out(1)
        No job is here, apart from a set on ``signal``.

    With every read granted a job takes ``fold_depth`` cycles. Cost: one lane row of registers for two-element lanes.
    """

    i: stream.Interface
    read: wiring.PureInterface
    weights: data.View
    weights_valid: Signal
    weights_first: Signal
    swap: Signal
    swaps: Signal
    loads: Signal
    quiet: Signal
    signal: stream.Interface
    fault: data.View
    idle: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(WEIGHTS_JOB)),
                "read": Out(read_port(config.scratchpad_rows, 8 * config.row_bytes)),
                "weights": Out(lanes(config)),
                "weights_valid": Out(1),
                "weights_first": Out(1),
                "swap": In(1),
                "swaps": In(ORDER_BITS),
                "loads": Out(ORDER_BITS),
                "quiet": In(1),
                "signal": Out(stream.Signature(SEMAPHORES)),
                "fault": Out(Fault),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        fold_depth = self._config.fold_depth
        m.submodules.walk = walk = RowWalk(
            self._config.scratchpad_rows,
            dims=1,
            stride_bits=PARAMS[Param.WEIGHT_STRIDE].width,
            count_bits=1,
            rows_bits=fold_depth.bit_length(),
        )
        following = Signal(WEIGHTS_JOB, reset_less=True)
        waiting = Signal()
        job = Signal(WEIGHTS_JOB, reset_less=True)
        row = walk.o.payload
        m.d.comb += [
            self.i.ready.eq(~waiting),
            self.idle.eq(~waiting & ~walk.o.valid),
            walk.i.valid.eq(waiting),
            walk.i.payload.base.eq(following.row),
            walk.i.payload.strides[0].eq(following.stride),
            walk.i.payload.rows.eq(Mux(following.void, 1, fold_depth)),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [following.eq(self.i.payload), waiting.eq(1)]
        with m.If(walk.i.ready):
            m.d.sync += [job.eq(following), waiting.eq(0)]

        swapped = (job.swaps == self.swaps) | (self.swap & (job.swaps == (self.swaps + 1)[:ORDER_BITS]))
        go = walk.o.valid & ~job.void & (~row.first | swapped)
        grant = Signal()
        fail = Signal()
        void = Signal()
        finish = Signal()
        m.d.comb += [
            self.read.row.eq(row.position),
            self.read.valid.eq(go & ~row.outside & ~(row.final & self.signal.valid)),
            grant.eq(self.read.valid & self.read.ready),
            fail.eq(go & row.outside & self.quiet & ~self.signal.valid),
            void.eq(walk.o.valid & job.void & ~self.signal.valid),
            walk.o.ready.eq(grant | fail | void),
            walk.skip.eq(row.outside),
            finish.eq((grant & row.final) | fail | void),
            self.fault.valid.eq(fail),
            self.fault.code.eq(FaultCode.LOCAL_ADDRESS),
            self.fault.pc.eq(job.pc),
            self.fault.address.eq(row.position),
        ]
        with m.If(self.signal.ready):
            m.d.sync += self.signal.valid.eq(0)
        with m.If(finish):
            m.d.sync += [self.signal.valid.eq(1), self.signal.payload.eq(job.signal)]
            m.d.sync += self.loads.eq(self.loads + ~job.void)

        self._feed(m, grant, walk.i.ready, job.half)
        return m

    def _feed(self, m: Module, grant: Signal, start: Signal, half: Signal) -> None:
        """Words for the array out of the rows that come back."""
        n, elements = self._config.array, self._config.lane_elements
        first = Signal(reset_less=True)
        element = Signal(range(elements), reset_less=True)
        complete = element == elements - 1
        with m.If(grant):
            m.d.sync += element.eq(element + 1)
            with m.If(complete):
                m.d.sync += [first.eq(0), element.eq(0)]
        with m.If(start):
            m.d.sync += [first.eq(1), element.eq(0)]

        now = {"arrived": grant, "word": grant & complete, "first": first, "half": half}
        for i in range(READ_LATENCY):
            later = {name: Signal(name=f"{name}{i}") for name in now}
            m.d.sync += [later[name].eq(value) for name, value in now.items()]
            now = later
        m.d.comb += [self.weights_valid.eq(now["word"]), self.weights_first.eq(now["first"])]
        if elements == 1:
            m.d.comb += self.weights.eq(self.read.data)
            return
        columns = Signal(8 * n)
        before = Signal(8 * n, reset_less=True)
        m.d.comb += columns.eq(Mux(now["half"], self.read.data[8 * n :], self.read.data[: 8 * n]))
        with m.If(now["arrived"]):
            m.d.sync += before.eq(columns)
        for c in range(n):
            m.d.comb += self.weights[c].eq(Cat(before[8 * c : 8 * c + 8], columns[8 * c : 8 * c + 8]))
