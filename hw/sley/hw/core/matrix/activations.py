"""The engine that executes MATMUL: scratchpad rows to the west edge of the array."""

from amaranth import Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import PC_BITS, FaultCode
from sley.abi.instructions import SEMAPHORES
from sley.abi.parameters import PARAMS, Param
from sley.abi.timing import SRAM_READ, write_latency
from sley.abi.types import ElementType
from sley.hw.core.matrix.accumulate import MOST_LASTS, issue_slot
from sley.hw.core.matrix.hazards import Hazards
from sley.hw.core.matrix.row_walk import RowWalk
from sley.hw.core.matrix.rows import lanes
from sley.hw.core.matrix.weights import ORDER_BITS
from sley.hw.core.sram.memories import scratchpad_read
from sley.hw.core.unit import Fault

STRIDE_BITS = PARAMS[Param.ACT_STRIDE].width
COUNT_BITS = PARAMS[Param.ACT_COUNT].width
ROWS_BITS = 16
MOST_VOIDS = MOST_LASTS - 1
"""MATMULs without rows that may wait for the last row of the same MATMUL before them."""


def matmul_job(config: ChipConfig) -> data.StructLayout:
    """A MATMUL for the streamer.

    ``end``: the accumulator row behind its last. ``void``: no rows, only to complete behind those before. ``swap``: its
    first row makes the spare weights active, and waits until ``loads``, the count of weight loads handed out before
    it, are done.
    """
    return data.StructLayout(
        {
            "row": 32,
            "strides": data.ArrayLayout(signed(STRIDE_BITS), 3),
            "counts": data.ArrayLayout(COUNT_BITS, 2),
            "rows": ROWS_BITS,
            "dest": range(config.accumulator_rows),
            "end": range(config.accumulator_rows + 1),
            "accumulate": 1,
            "bf16": 1,
            "void": 1,
            "swap": 1,
            "loads": ORDER_BITS,
            "signal": SEMAPHORES,
            "pc": PC_BITS,
        }
    )


class ActivationStreamer(wiring.Component):
    """Reads activation rows by an affine walk and sends them through the array, one a cycle.

    A MATMUL waits until its weights are there, until no row that it accumulates to is in flight through the array,
    and, if it is of the other type than the one before, until the last row has been written.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    i : In(stream of matmul_job(config))
        One job waits while one runs; no cycle is lost between them.
    read : Out(read_port)
        Of the scratchpad. A cycle without a grant is a cycle without a row.
    activations : Out(lanes(config)), activations_swap : Out(1)
        To the array, SRAM_READ cycles after the grant; the mark of a row that swaps one cycle before it.
    slot : Out(issue_slot(config))
        What was granted, in that cycle.
    loaded : In(1)
        The last row of a weight load is read in this cycle.
    settled : In(1)
        A row of int8 may swap.
    row_bf16 : Out(1)
        The row that is granted in this cycle is of bf16.
    bf16 : Out(1), run : Out(1)
        The type of the rows that were granted last; rows of bf16 may be in flight.
    swap : Out(1), swap_bf16 : Out(1), swaps : Out(ORDER_BITS)
        A row that swaps is granted in this cycle, and it is of bf16; the count of those of earlier cycles.
    quiet : Out(1)
        Nothing runs, or what runs waits for weights.
    hazard : Out(1)
        For counters: a MATMUL that has its weights waits for rows in flight.
    signal : Out(stream of SEMAPHORES bits)
        The signal set of each job as it is accepted, which waits for that.
    fault : Out(Fault)
        As of ``unit_signature``.
    idle : Out(1)
        No job is here; rows may still be in the array.

    Cost
    ----
    Address generator and job registers, about 400 bits, and ``Hazards``.
    """

    i: stream.Interface
    read: wiring.PureInterface
    activations: data.View
    activations_swap: Signal
    slot: data.View
    loaded: Signal
    settled: Signal
    row_bf16: Signal
    bf16: Signal
    run: Signal
    swap: Signal
    swap_bf16: Signal
    swaps: Signal
    quiet: Signal
    hazard: Signal
    signal: stream.Interface
    fault: data.View
    idle: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(matmul_job(config))),
                "read": Out(scratchpad_read(config)),
                "activations": Out(lanes(config)),
                "activations_swap": Out(1),
                "slot": Out(issue_slot(config)),
                "loaded": In(1),
                "settled": In(1),
                "row_bf16": Out(1),
                "bf16": Out(1),
                "run": Out(1),
                "swap": Out(1),
                "swap_bf16": Out(1),
                "swaps": Out(ORDER_BITS),
                "quiet": Out(1),
                "hazard": Out(1),
                "signal": Out(stream.Signature(SEMAPHORES)),
                "fault": Out(Fault),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = matmul_job(self._config)
        m.submodules.walk = walk = RowWalk(
            self._config.scratchpad_rows,
            dims=3,
            stride_bits=STRIDE_BITS,
            count_bits=COUNT_BITS,
            rows_bits=ROWS_BITS,
        )
        m.submodules.hazards = hazards = Hazards(self._config)
        following = Signal(layout, reset_less=True)
        single = Signal(reset_less=True)  # it has one row
        waiting = Signal()
        job = Signal(layout, reset_less=True)
        dest = Signal.like(job.dest, reset_less=True)
        row = walk.o.payload
        # MATMULs without rows wait in no job's place, so that the weights behind them can be loaded: they complete with
        # the last row of the one before them.
        voids = Signal(range(MOST_VOIDS + 1))  # of the one that runs
        later_voids = Signal.like(voids)  # of the one that waits
        room = Signal(init=1)  # for one more of those that count now
        taken = Signal()
        m.d.comb += [
            taken.eq(Mux(self.i.payload.void, room, ~waiting)),
            self.i.ready.eq(taken & self.signal.ready),
            self.signal.valid.eq(self.i.valid & taken),
            self.signal.payload.eq(self.i.payload.signal),
            self.idle.eq(~waiting & ~walk.o.valid & (voids == 0)),
            walk.i.valid.eq(waiting & ~hazards.full),
            walk.i.payload.base.eq(following.row),
            walk.i.payload.strides.eq(following.strides),
            walk.i.payload.rows.eq(following.rows),
            walk.i.payload.single.eq(single),
        ]
        m.d.comb += [walk.i.payload.counts[k].eq(following.counts[k]) for k in range(2)]
        take = self.i.valid & self.i.ready
        new_void = take & self.i.payload.void
        with m.If(~waiting):
            m.d.sync += [following.eq(self.i.payload), single.eq(self.i.payload.rows == 1)]
            m.d.sync += waiting.eq(take & ~self.i.payload.void)

        # Whether loads are missing is found a cycle ahead: what reads the scratchpad waits for the answer.
        loads = Signal(ORDER_BITS)  # complete in earlier cycles
        missing = Signal(reset_less=True)
        missed = [
            Mux(walk.i.ready, following.swap & (following.loads != count), job.swap & (job.loads != count))
            for count in (loads, (loads + 1)[:ORDER_BITS])
        ]
        misses = Mux(self.loaded, missed[1], missed[0])  # ``loaded`` comes last
        m.d.sync += [loads.eq(loads + self.loaded), missing.eq(misses)]
        # So is whether the row that is there swaps, as the weights behind it may be read in the cycle of its grant.
        swapping = Signal()
        m.d.sync += swapping.eq(Mux(walk.i.ready, following.swap, swapping & ~walk.o.ready))
        grant = Signal()
        fail = Signal()
        unloaded: Value = missing
        stalled: Value = Signal(reset_less=True)
        if self._config.has(ElementType.BF16):
            unloaded = missing | (job.swap & ~job.bf16 & ~self.settled)
            stalled = unloaded | hazards.blocked | self._other_type(m, job, grant)
        else:
            m.d.sync += stalled.eq(misses | hazards.blocks)
        go = walk.o.valid & ~(row.first & stalled)
        ended = Signal()
        m.d.comb += [
            self.read.row.eq(row.position),
            self.read.valid.eq(walk.inside & ~(row.first & stalled)),
            grant.eq(self.read.valid & self.read.ready),
            fail.eq(go & row.outside),
            ended.eq(fail | (grant & row.final)),
            walk.o.ready.eq(grant | fail),
            walk.skip.eq(row.outside),
            self.swap.eq(swapping & ~stalled & (row.outside | self.read.ready)),
            self.swap_bf16.eq(self.swap & job.bf16),
            self.quiet.eq((walk.o.valid & row.first & unloaded) | self.idle),
            self.row_bf16.eq(job.bf16),
            self.hazard.eq(walk.o.valid & ~unloaded & ~go),
            self.slot.row.eq(grant),
            self.slot.lasts.eq(ended + Mux(ended | ~walk.o.valid, voids, 0)),
            self.slot.dest.eq(dest),
            self.slot.accumulate.eq(job.accumulate),
            self.fault.valid.eq(fail),
            self.fault.code.eq(FaultCode.LOCAL_ADDRESS),
            self.fault.pc.eq(job.pc),
            self.fault.address.eq(row.position),
        ]
        m.d.comb += [
            hazards.start.eq(walk.i.ready),
            hazards.begin.eq(following.dest),
            hazards.end.eq(following.end),
            hazards.accumulate.eq(following.accumulate),
            hazards.bf16.eq(following.bf16),
            hazards.last.eq(ended),
        ]
        with m.If(grant):
            m.d.sync += dest.eq(dest + 1)
        full, nearly = (
            Mux(waiting, later_voids == count, (voids == count) & walk.o.valid & ~ended)
            for count in (MOST_VOIDS, MOST_VOIDS - 1)
        )
        m.d.sync += room.eq((take & ~self.i.payload.void) | ~(full | (nearly & new_void)))
        m.d.sync += [
            self.swaps.eq(self.swaps + self.swap),
            voids.eq(Mux(ended | ~walk.o.valid, 0, voids) + (new_void & ~waiting)),
            later_voids.eq(later_voids + (new_void & waiting)),
        ]
        with m.If(walk.i.ready):
            m.d.sync += [job.eq(following), dest.eq(following.dest), waiting.eq(0)]
            m.d.sync += [voids.eq(later_voids + new_void), later_voids.eq(0)]

        entering: Signal = grant & swapping
        for i in range(SRAM_READ - 1):
            later = Signal(name=f"swap{i}")
            m.d.sync += later.eq(entering)
            entering = later
        m.d.comb += [self.activations.eq(self.read.data), self.activations_swap.eq(entering)]
        return m

    def _other_type(self, m: Module, job: data.View, grant: Signal) -> Value:
        """Whether rows of the other type than the job's are on their way."""
        # Cycles until the last slot, with or without a row, has left; until then it needs the way of its type.
        flight = Signal(range(write_latency(self._config, ElementType.BF16) + 1))
        m.d.comb += self.run.eq(self.bf16 & (flight != 0))
        with m.If(flight != 0):
            m.d.sync += flight.eq(flight - 1)
        with m.If(grant):
            m.d.sync += self.bf16.eq(job.bf16)
        with m.If(self.slot.row | (self.slot.lasts != 0)):
            m.d.sync += flight.eq(write_latency(self._config))
            with m.If(Mux(grant, job.bf16, self.bf16)):
                m.d.sync += flight.eq(write_latency(self._config, ElementType.BF16))
        return (flight != 0) & (job.bf16 != self.bf16)
