"""The writes of the vector unit: rows of results on their way to the memories."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.instructions import Space
from sley.hw.core.sram.memories import accumulator_write, scratchpad_write
from sley.hw.core.vector.in_flight import place_layout
from sley.hw.core.vector.late import WAITING_ROWS
from sley.hw.stream.wide import WideFIFO


def output_rows(config: ChipConfig) -> int:
    """Rows in flight between their reads and their writes at most: more than the longest path has at full rate.

    In four parts or more each takes so long that half as many do, which is what fits in the LUTs of an FPGA.
    """
    if config.vector_chains:
        return WAITING_ROWS
    return 32 if config.row_parts < 4 else 16


def destination_layout(config: ChipConfig) -> data.StructLayout:
    """Where a row goes: to a place, as a whole row of what has 16 bits, or to a half; nowhere, if it is not written.
    ``last``: of its command."""
    return data.StructLayout({"place": place_layout(config), "whole": 1, "half": 1, "written": 1, "last": 1})


class VectorWrites(wiring.Component):
    """Queue of the rows of results in front of the two write ports, and of their destinations.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    to : In(stream of destination_layout(config))
        A row is read that goes there. Accepted if fewer than ``output_rows(config)`` rows are here: ``ready`` is not to
        be asked for.
    i : In(stream of 32 * array bits)
        The results: a row of fp32 or int32 words, or of what has 16 or 8 bits in their low ones, in the order of
        ``to``, two cycles behind it or later.
    abort : In(1)
        Drops all rows. In its first cycle one may still be written, so that no write waits for ``abort``.
    scratchpad_write : Out(scratchpad_write(config)), accumulator_write : Out(accumulator_write(config))
        Write ports of the memories.
    done, ends : Out(1)
        A row is written, or dropped because it is not to be written; it is the last of its command.

    Cost
    ----
    A queue of ``output_rows`` rows of N words and of destinations.
    """

    to: stream.Interface
    i: stream.Interface
    abort: Signal
    scratchpad_write: wiring.PureInterface
    accumulator_write: wiring.PureInterface
    done: Signal
    ends: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        super().__init__(
            {
                "to": In(stream.Signature(destination_layout(config))),
                "i": In(stream.Signature(32 * config.array)),
                "abort": In(1),
                "scratchpad_write": Out(scratchpad_write(config)),
                "accumulator_write": Out(accumulator_write(config)),
                "done": Out(1),
                "ends": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        results = WideFIFO(32 * config.array, output_rows(config))
        destinations = WideFIFO(destination_layout(config), output_rows(config))
        m.submodules.queue = ResetInserter(self.abort)(results)
        m.submodules.destinations = ResetInserter(self.abort)(destinations)
        wiring.connect(m, wiring.flipped(self.i), results.i)
        wiring.connect(m, wiring.flipped(self.to), destinations.i)
        to = destinations.o.payload
        words = [results.o.payload.word_select(index, 32) for index in range(config.array)]
        in_accumulator = to.place.space == Space.ACCUMULATOR
        goes = results.o.valid & to.written
        m.d.comb += [
            self.scratchpad_write.valid.eq(goes & ~in_accumulator),
            self.scratchpad_write.row.eq(to.place.row),
            self.scratchpad_write.data.eq(Cat(word[:8] for word in words).replicate(config.lane_elements())),
            self.scratchpad_write.enable.eq(1 << to.half),
            self.accumulator_write.valid.eq(goes & in_accumulator),
            self.accumulator_write.row.eq(to.place.row),
            self.accumulator_write.data.eq(results.o.payload),
            self.accumulator_write.enable.eq(~0),
            results.o.ready.eq(
                ~to.written | Mux(in_accumulator, self.accumulator_write.ready, self.scratchpad_write.ready)
            ),
            self.done.eq(results.o.valid & results.o.ready),
            destinations.o.ready.eq(self.done),
            self.ends.eq(self.done & to.last),
        ]
        if config.lane_bits == 16:
            with m.If(to.whole):
                m.d.comb += [
                    self.scratchpad_write.data.eq(Cat(word[:16] for word in words)),
                    self.scratchpad_write.enable.eq(~0),
                ]
        return m
