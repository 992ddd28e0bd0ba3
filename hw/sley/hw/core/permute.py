"""The rows of a LOAD that interleaves or transposes: from the order of the runs to the order of the local rows."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.instructions import INTERLEAVE_CHUNKS, TRANSPOSE_CHUNKS
from sley.hw.core.affine import AffineWalk
from sley.hw.core.transposer import BlockTransposer
from sley.hw.stream.fifo import StreamFIFO

JOBS = 8
"""Commands that may be here."""
CHUNK_BITS = INTERLEAVE_CHUNKS.bit_length()
UNITS_BITS = 17
STRIDE_BITS = 17

PERMUTE_JOB = data.StructLayout(
    {
        "pc": 16,
        "work": 1,  # it has rows; otherwise it only completes
        "interleave": 1,
        "transpose": 1,
        "row": 32,
        "chunks": CHUNK_BITS,
        "units": UNITS_BITS,
        "slabs": 17,
        "chunk_stride": signed(16),
        "unit_stride": signed(16),
        "slab_stride": signed(16),
    }
)
"""A command. A unit is what is permuted at a time: 2 runs to interleave, N to transpose, 2N for both."""


def interleaves(config: ChipConfig) -> bool:
    """Whether the chip can interleave: a lane holds two int8."""
    return config.lane_elements == 2


def unit_runs(config: ChipConfig) -> tuple[int, int, int, int]:
    """Log2 of the runs in a unit, by the flags: none, interleave, transpose, both."""
    n = exact_log2(config.array)
    return 0, 1, n, n + 1


class Permute(wiring.Component):
    """Interleaves pairs of rows, transposes blocks of N x N lanes, and says where the results belong.

    Parameters
    ----------
    config : ChipConfig

    Members
    -------
    job : In(stream of PERMUTE_JOB)
        In the order of the commands. ``work`` needs ``interleave`` or ``transpose``.
    flags : Out(2)
        Whether rows are interleaved and transposed at present. A job with other flags may come only while ``idle``.
    i : In(stream of rows)
        The rows of the job accepted last, as memory has them: whole units, ``chunks`` rows for each run. They come
        after the job was accepted.
    o : Out(stream)
        ``write``: store ``data`` in local row ``row``; ``done``: the last of its job.
    outside : Out(1), pc : Out(16), row : Out(32)
        A row does not exist: the rest of its job is dropped, and completes. High when that is found.
    last : Out(1)
        The job at the output is the one accepted last.
    settled : Out(1)
        No complete unit is here, and no job but the one accepted last.
    idle : Out(1)
        Nothing is here, nor was in the cycle before. Low from the cycle after a job came.

    Latency: a unit and 1 cycle from its first row to its first result; two runs and 1 cycle more if it is interleaved
    and transposed. Throughput: one row a cycle, also from unit to unit and from job to job; a job without rows takes a
    cycle. Cost: the transposers, a walk of five loops, a queue of JOBS jobs.
    """

    job: stream.Interface
    flags: Signal
    i: stream.Interface
    o: stream.Interface
    outside: Signal
    pc: Signal
    row: Signal
    last: Signal
    settled: Signal
    idle: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        row = 8 * config.row_bytes
        out = data.StructLayout({"write": 1, "done": 1, "row": range(config.scratchpad_rows), "data": row})
        super().__init__(
            {
                "job": In(stream.Signature(PERMUTE_JOB)),
                "flags": Out(2),
                "i": In(stream.Signature(row)),
                "o": Out(stream.Signature(out)),
                "outside": Out(1),
                "pc": Out(16),
                "row": Out(32),
                "last": Out(1),
                "settled": Out(1),
                "idle": Out(1, init=1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.jobs = jobs = StreamFIFO(PERMUTE_JOB, JOBS)
        wiring.connect(m, wiring.flipped(self.job), jobs.i)
        moved = Signal(8 * self._config.row_bytes)
        valid, ready = Signal(), Signal()
        complete, empty = self._move(m, moved, valid, ready)

        m.submodules.walk = walk = AffineWalk(
            5, limits=(self._config.scratchpad_rows,), stride_bits=STRIDE_BITS, count_bits=UNITS_BITS
        )
        active, work = Signal(), Signal(reset_less=True)
        dropping = Signal(reset_less=True)
        job, out = jobs.o.payload, self.o.payload
        finish = self.o.valid & self.o.ready & out.done
        take = jobs.o.valid & (~active | finish)
        m.d.comb += [
            jobs.o.ready.eq(~active | finish),
            walk.start.eq(take & job.work),
            walk.base.eq(job.row),
            self.o.valid.eq(active & (~work | valid)),
            ready.eq(active & work & self.o.ready),
            walk.step.eq(ready & valid & ~walk.end),
            out.write.eq(work & ~walk.outside & ~dropping),
            out.done.eq(~work | walk.end),
            out.row.eq(walk.position),
            out.data.eq(moved),
            self.outside.eq(ready & valid & walk.outside & ~dropping),
            self.row.eq(walk.position),
            self.last.eq(jobs.empty),
            self.settled.eq(jobs.empty & ~complete),
        ]
        m.d.sync += self.idle.eq(jobs.empty & ~active & empty & ~self.job.valid)
        # A run's chunks, the halves of interleaved rows, the rows of a transposed block, units, slabs.
        loops = (
            (job.chunks, job.chunk_stride << job.interleave),
            (1 + job.interleave, job.chunk_stride),
            (Mux(job.transpose, self._config.array, 1), 1),
            (job.units, job.unit_stride),
            (job.slabs, job.slab_stride),
        )
        for k, (count, stride) in enumerate(loops):
            m.d.comb += [walk.counts[k].eq(count), walk.strides[k].eq(stride)]
        with m.If(finish):
            m.d.sync += active.eq(0)
        with m.If(self.outside):
            m.d.sync += dropping.eq(1)
        with m.If(take):
            m.d.sync += [active.eq(1), work.eq(job.work), dropping.eq(0), self.pc.eq(job.pc)]
        return m

    def _move(self, m: Module, moved: Signal, valid: Signal, ready: Signal) -> tuple[Any, Any]:
        """The data path from ``i``. Returns whether a complete unit is in it, and whether nothing is."""
        c = self._config
        interleave, transpose = self.flags
        chunks = Signal(CHUNK_BITS, reset_less=True)
        with m.If(self.job.valid & self.job.ready & self.job.payload.work):
            m.d.sync += [
                self.flags.eq(Cat(self.job.payload.interleave, self.job.payload.transpose)),
                chunks.eq(self.job.payload.chunks),
            ]
        m.submodules.transposer = transposer = BlockTransposer(c.array, c.lane_bits, TRANSPOSE_CHUNKS)
        m.d.comb += transposer.o.ready.eq(ready)
        if not interleaves(c):
            m.d.comb += [
                transposer.i.payload.row.eq(self.i.payload),
                transposer.i.payload.columns.eq(chunks),
                transposer.i.valid.eq(self.i.valid),
                self.i.ready.eq(transposer.i.ready),
                moved.eq(transposer.o.payload),
                valid.eq(transposer.o.valid),
            ]
            return (transposer.level != 0) | transposer.o.valid, transposer.idle

        # Two rows of two halves each: halves are transposed, then the bytes of the two in a row are interleaved.
        m.submodules.interleaver = halves = BlockTransposer(2, 8 * c.array, INTERLEAVE_CHUNKS)
        first, second = halves.o.payload[0], halves.o.payload[1]
        woven = Cat(Cat(first.word_select(k, 8), second.word_select(k, 8)) for k in range(c.array))
        m.d.comb += [
            halves.i.payload.row.eq(self.i.payload),
            halves.i.payload.columns.eq(chunks),
            halves.i.valid.eq(self.i.valid & interleave),
            halves.o.ready.eq(Mux(transpose, transposer.i.ready, ready)),
            transposer.i.payload.row.eq(Mux(interleave, woven, self.i.payload)),
            transposer.i.payload.columns.eq(Mux(interleave, halves.columns << 1, chunks)),
            transposer.i.valid.eq(transpose & Mux(interleave, halves.o.valid, self.i.valid)),
            self.i.ready.eq(Mux(interleave, halves.i.ready, transposer.i.ready)),
            moved.eq(Mux(transpose, transposer.o.payload, woven)),
            valid.eq(Mux(transpose, transposer.o.valid, halves.o.valid)),
        ]
        complete = (transposer.level != 0) | transposer.o.valid | (halves.level != 0) | halves.o.valid
        return complete, transposer.idle & halves.idle
