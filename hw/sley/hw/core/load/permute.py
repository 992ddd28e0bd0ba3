"""The rows of a LOAD that interleaves or transposes: from the order of the runs to the order of the local rows."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.instructions import INTERLEAVE_CHUNKS, TRANSPOSE_CHUNKS
from sley.hw.core.load.transposer import TAG_BITS, BlockTransposer


def interleaves(config: ChipConfig) -> bool:
    """Whether the chip can interleave: a lane holds two int8."""
    return config.lane_elements() == 2


def unit_runs(config: ChipConfig) -> tuple[int, int, int, int]:
    """Log2 of the runs in a unit, by the flags: none, interleave, transpose, both."""
    n = exact_log2(config.array)
    return 0, 1, n, n + 1


def row_loops(config: ChipConfig) -> int:
    """Loops that the rows of a unit take: chunks, the halves of interleaved rows, rows of a transposed block."""
    return 3 if interleaves(config) else 2


class Permute(wiring.Component):
    """Interleaves pairs of rows and transposes blocks of N x N lanes. A unit is what is permuted at a time: 2 runs to
    interleave, N to transpose, 2N for both.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    flags : In(2)
        Whether rows are interleaved and transposed; one of them is. May change while ``idle``.
    i : In(stream of {row, last, tag})
        The rows as memory has them: whole units, as many rows for each run, of which one is its last. The tag is that
        of a unit's last row.
    o : Out(stream of rows)
        The permuted rows.
    last : Out(row_loops(config))
        The row on ``o`` is the last one of each of its loops, the innermost first; bits above the lowest 0 mean
        nothing.
    tag : Out(TAG_BITS)
        Of the unit on ``o``.
    complete : Out(1)
        A complete unit is here.
    idle : Out(1)
        Nothing is here.

    Latency
    -------
    A unit and 1 cycle from its first row to its first result, one more if rows of more than 4 lanes are transposed; two
    runs and 1 cycle more if it is interleaved and transposed.

    Throughput
    ----------
    One row a cycle, also from unit to unit.

    Cost
    ----
    The transposers.
    """

    flags: Signal
    i: stream.Interface
    o: stream.Interface
    last: Signal
    tag: Signal
    complete: Signal
    idle: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        row = 8 * config.row_bytes
        item = data.StructLayout({"row": row, "last": 1, "tag": TAG_BITS})
        super().__init__(
            {
                "flags": In(2),
                "i": In(stream.Signature(item)),
                "o": Out(stream.Signature(row)),
                "last": Out(row_loops(config)),
                "tag": Out(TAG_BITS),
                "complete": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        interleave, transpose = self.flags
        m.submodules.transposer = transposer = BlockTransposer(c.array, c.lane_bits, TRANSPOSE_CHUNKS)
        item, rows = self.i.payload, transposer.i.payload
        if not interleaves(c):
            m.d.comb += [
                rows.row.eq(item.row),
                rows.last.eq(item.last),
                rows.tag.eq(item.tag),
                transposer.i.valid.eq(self.i.valid),
                self.i.ready.eq(transposer.i.ready),
                transposer.o.ready.eq(self.o.ready),
                self.o.payload.eq(transposer.o.payload),
                self.o.valid.eq(transposer.o.valid),
                self.last.eq(Cat(transposer.row_end, transposer.block_end)),
                self.tag.eq(transposer.tag),
                self.complete.eq(transposer.complete),
                self.idle.eq(transposer.idle),
            ]
            return m

        # Two rows of two halves each: halves are transposed, then the bytes of the two in a row are interleaved.
        m.submodules.interleaver = halves = BlockTransposer(2, 8 * c.array, INTERLEAVE_CHUNKS)
        first, second = halves.o.payload[0], halves.o.payload[1]
        interleaved = Cat(Cat(first.word_select(k, 8), second.word_select(k, 8)) for k in range(c.array))
        m.d.comb += [
            halves.i.payload.row.eq(item.row),
            halves.i.payload.last.eq(item.last),
            halves.i.payload.tag.eq(item.tag),
            halves.i.valid.eq(self.i.valid & interleave),
            halves.o.ready.eq(Mux(transpose, transposer.i.ready, self.o.ready)),
            rows.row.eq(Mux(interleave, interleaved, item.row)),
            rows.last.eq(Mux(interleave, halves.block_end, item.last)),
            rows.tag.eq(Mux(interleave, halves.tag, item.tag)),
            transposer.i.valid.eq(transpose & Mux(interleave, halves.o.valid, self.i.valid)),
            transposer.o.ready.eq(self.o.ready),
            self.i.ready.eq(Mux(interleave, halves.i.ready, transposer.i.ready)),
            self.o.payload.eq(Mux(transpose, transposer.o.payload, interleaved)),
            self.o.valid.eq(Mux(transpose, transposer.o.valid, halves.o.valid)),
            self.tag.eq(Mux(transpose, transposer.tag, halves.tag)),
            self.idle.eq(transposer.idle & halves.idle),
            self.complete.eq(transposer.complete | halves.complete),
        ]
        # A row of a block of both has the chunks of the first halves, then those of the second.
        one = Const(1)
        with m.If(~transpose):
            m.d.comb += self.last.eq(Cat(halves.row_end, halves.block_end, one))
        with m.Elif(interleave):
            half_end = transposer.row_end | transposer.middle
            m.d.comb += self.last.eq(Cat(half_end, transposer.row_end, transposer.block_end))
        with m.Else():
            m.d.comb += self.last.eq(Cat(transposer.row_end, one, transposer.block_end))
        return m
