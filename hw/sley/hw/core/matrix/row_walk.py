"""Affine walks of one job after another, a position ahead of their reader."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.hw.core.affine import POSITION_BITS, AffineWalk


def walk_job(dims: int, stride_bits: int, count_bits: int, rows_bits: int) -> data.StructLayout:
    """A walk of ``rows`` positions, 2 at the least, or of one if ``single``, whatever ``rows`` is. ``void``: its one
    position is not inside, wherever it is. See ``AffineWalk`` for the others. A count of 0 is more than all."""
    return data.StructLayout(
        {
            "base": POSITION_BITS,
            "strides": data.ArrayLayout(signed(stride_bits), dims),
            "counts": data.ArrayLayout(count_bits, dims),
            "rows": rows_bits,
            "single": 1,
            "void": 1,
        }
    )


WALK_STEP = data.StructLayout({"position": POSITION_BITS, "outside": 1, "first": 1, "final": 1})
"""A position, and whether it is outside the memory, the first, the final one of its job."""


class RowWalk(wiring.Component):
    """``AffineWalk`` with an output register, so that a reader's port and its checks see registers only.

    Parameters
    ----------
    rows : int
        Of the memory that is walked.
    dims, stride_bits, count_bits, rows_bits : int
        Shape of the jobs.

    Members
    -------
    i : In(stream of walk_job)
        Accepted in the cycle before the job's first position is on ``o``. A job that is on ``i`` when the final
        position of the one before moves to ``o`` follows without a gap.
    o : Out(stream of WALK_STEP)
        The positions.
    inside : Out(1)
        A position is on ``o``, and it is not outside.
    skip : In(1)
        With ``o.ready``: the rest of this job is dropped.

    Latency
    -------
    2 cycles.

    Throughput
    ----------
    One position a cycle.
    """

    i: stream.Interface
    o: stream.Interface
    inside: Signal
    skip: Signal

    def __init__(self, rows: int, *, dims: int, stride_bits: int, count_bits: int, rows_bits: int) -> None:
        self._rows = rows
        self._dims = dims
        self._stride_bits = stride_bits
        self._count_bits = count_bits
        super().__init__(
            {
                "i": In(stream.Signature(walk_job(dims, stride_bits, count_bits, rows_bits))),
                "o": Out(stream.Signature(WALK_STEP)),
                "inside": Out(1),
                "skip": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # One more bit holds what a count of 0 stands for.
        m.submodules.walk = walk = AffineWalk(
            self._dims, limits=(self._rows,), stride_bits=self._stride_bits, count_bits=self._count_bits + 1
        )
        job = self.i.payload
        m.d.comb += walk.base.eq(job.base)
        for k in range(self._dims):
            m.d.comb += [
                walk.strides[k].eq(job.strides[k]),
                walk.counts[k][: self._count_bits].eq(job.counts[k]),
                walk.counts[k][self._count_bits].eq(job.counts[k] == 0),
            ]

        busy = Signal()  # the walk is at a position that has not moved to ``o``
        first = Signal()  # it is the first one, of the job on ``i``; else one of the job that was accepted
        ending = Signal()  # it is the final one, and not the first
        left = Signal.like(job.rows, reset_less=True)  # positions of the job from this one on, if not the first
        final = (first & job.single) | ending
        outside = walk.position[(self._rows - 1).bit_length() :].any()  # ``walk.outside``, from a register
        move = Signal()
        step = Signal(WALK_STEP, reset_less=True)
        m.d.comb += [
            move.eq(busy & (~self.o.valid | self.o.ready)),
            self.i.ready.eq(move & first),
            walk.start.eq(self.i.valid & (~busy | (move & ending))),
            walk.step.eq(move & ~final),
            self.o.payload.eq(step),
        ]
        with m.If(self.o.ready):
            m.d.sync += [self.o.valid.eq(0), self.inside.eq(0)]
        with m.If(move):
            m.d.sync += [
                self.o.valid.eq(1),
                self.inside.eq(~outside & ~(first & job.void)),
                step.position.eq(walk.position),
                step.outside.eq(outside),
                step.first.eq(first),
                step.final.eq(final),
                left.eq(Mux(first, job.rows, left) - 1),
                ending.eq(Mux(first, ~job.single & (job.rows == 2), left == 2)),
                busy.eq(~final),
                first.eq(0),
            ]
        with m.If(walk.start):
            m.d.sync += [busy.eq(1), first.eq(1)]
        with m.If(self.o.ready & self.skip & ~step.final):
            m.d.sync += [self.o.valid.eq(0), self.inside.eq(0), busy.eq(0), first.eq(0), ending.eq(0)]
        return m
