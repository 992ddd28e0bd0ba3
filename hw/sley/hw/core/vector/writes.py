"""The writes of the vector unit: rows of results on their way to the memories."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.hw.core.params import params_layout
from sley.hw.core.sram.memories import accumulator_write, scratchpad_write
from sley.hw.core.vector.late import WAITING_ROWS
from sley.hw.stream.wide import WideFIFO


def output_rows(config: ChipConfig) -> int:
    """Rows in flight between their reads and their writes at most: more than the longest path has at full rate.

    In four parts or more each takes so long that half as many do, which is what fits in the LUTs of an FPGA.
    """
    if config.vector_chains:
        return WAITING_ROWS
    return 32 if config.row_parts < 4 else 16


class VectorWrites(wiring.Component):
    """Queue of the rows of a command's results in front of the two write ports.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    i : In(stream of 32 * array bits)
        A row of fp32 or int32 words, or of what has 16 or 8 bits in their low ones. Accepted if fewer than
        ``output_rows(config)`` rows are here: ``ready`` is not to be asked for.
    start : In(1), row : In(32)
        A command starts: where its first row goes.
    stride : In(shape of OUT_STRIDE)
        From one row to the next; constant while rows are here.
    to_scratchpad : In(1), whole : In(1), half : In(1)
        The outputs are not whole rows of the accumulators; they are whole rows of 16 bits a lane; the half of a row
        of 8 bits. Constant while rows are here.
    abort : In(1)
        Drops all rows. In its first cycle one may still be written, so that no write waits for ``abort``.
    scratchpad_write : Out(scratchpad_write(config)), accumulator_write : Out(accumulator_write(config))
        Write ports of the memories.
    written : Out(1)
        A row is written in this cycle.

    Cost
    ----
    A queue of ``output_rows`` rows of N words, an adder.
    """

    i: stream.Interface
    start: Signal
    row: Signal
    stride: Signal
    to_scratchpad: Signal
    whole: Signal
    half: Signal
    abort: Signal
    scratchpad_write: wiring.PureInterface
    accumulator_write: wiring.PureInterface
    written: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(32 * config.array)),
                "start": In(1),
                "row": In(32),
                "stride": In(params_layout(Unit.VECTOR, config)["out_stride"].shape),
                "to_scratchpad": In(1),
                "whole": In(1),
                "half": In(1),
                "abort": In(1),
                "scratchpad_write": Out(scratchpad_write(config)),
                "accumulator_write": Out(accumulator_write(config)),
                "written": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        queue = WideFIFO(32 * config.array, output_rows(config))
        m.submodules.queue = ResetInserter(self.abort)(queue)
        wiring.connect(m, wiring.flipped(self.i), queue.i)
        row = Signal(max(len(self.scratchpad_write.row), len(self.accumulator_write.row)), reset_less=True)
        words = [queue.o.payload.word_select(index, 32) for index in range(config.array)]
        m.d.comb += [
            self.scratchpad_write.valid.eq(queue.o.valid & self.to_scratchpad),
            self.scratchpad_write.row.eq(row),
            self.scratchpad_write.data.eq(Cat(word[:8] for word in words).replicate(config.lane_elements())),
            self.scratchpad_write.enable.eq(1 << self.half),
            self.accumulator_write.valid.eq(queue.o.valid & ~self.to_scratchpad),
            self.accumulator_write.row.eq(row),
            self.accumulator_write.data.eq(queue.o.payload),
            self.accumulator_write.enable.eq(~0),
            queue.o.ready.eq(Mux(self.to_scratchpad, self.scratchpad_write.ready, self.accumulator_write.ready)),
            self.written.eq(queue.o.valid & queue.o.ready),
        ]
        if config.lane_bits == 16:
            with m.If(self.whole):
                m.d.comb += [
                    self.scratchpad_write.data.eq(Cat(word[:16] for word in words)),
                    self.scratchpad_write.enable.eq(~0),
                ]
        with m.If(self.start):
            m.d.sync += row.eq(self.row)
        with m.Elif(self.written):
            m.d.sync += row.eq(row + self.stride)
        return m
