"""The reads of the store unit: beats of the rows of each run, in order."""

from amaranth import Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.instructions import Space
from sley.abi.parameters import PARAMS, Param
from sley.abi.timing import SRAM_READ
from sley.hw.core.sram.memories import accumulator_read, scratchpad_read
from sley.hw.memory.run import RUN_BYTES_BITS
from sley.hw.stream.fifo import StreamFIFO

STRIDE_BITS = PARAMS[Param.CHUNK_STRIDE].width
BEATS_AHEAD = 8
"""Beats read and not yet taken by the writer: covers the latency of the memories and of the queue."""


class StoreReads(wiring.Component):
    """Reads the rows of each run, beat by beat, into a queue for the writer.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    start : In(stream of rows)
        The first row of each run.
    space : In(1), stride : In(signed(16)), last_beat : In(RUN_BYTES_BITS)
        Of all runs: where their rows are, rows from chunk to chunk, and their beats less 1. They change only while
        no run is here.
    data : Out(stream of 8 * bus_bytes bits)
        The beats, in the order of the runs.
    scratchpad, accumulator : Out(read_port(...))
        Each beat is one read: a row of the scratchpad, or a part of an accumulator row.
    idle : Out(1), taken : Out(1)
        No run is being read; and all beats have been taken.

    Latency
    -------
    1 cycle from a run to its first read, 4 from a read to its beat.

    Throughput
    ----------
    A beat a cycle, also from run to run.

    Cost
    ----
    A queue of beats, a row counter, a multiplexer of two beats.
    """

    start: stream.Interface
    space: Signal
    stride: Signal
    last_beat: Signal
    data: stream.Interface
    scratchpad: wiring.PureInterface
    accumulator: wiring.PureInterface
    idle: Signal
    taken: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = c = config
        super().__init__(
            {
                "start": In(stream.Signature(range(max(c.scratchpad_rows, c.accumulator_rows)))),
                "space": In(1),
                "stride": In(signed(STRIDE_BITS)),
                "last_beat": In(RUN_BYTES_BITS),
                "data": Out(stream.Signature(8 * c.bus_bytes)),
                "scratchpad": Out(scratchpad_read(c)),
                "accumulator": Out(accumulator_read(c, c.beats_per_accumulator_row)),
                "idle": Out(1),
                "taken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._config
        beats = c.beats_per_accumulator_row
        m.submodules.beats = queue = StreamFIFO(8 * c.bus_bytes, BEATS_AHEAD)
        wiring.connect(m, queue.o, wiring.flipped(self.data))
        starts, space, stride, last_beat = self.start, self.space, self.stride, self.last_beat
        active = Signal()
        row = Signal(starts.payload.shape(), reset_less=True)
        index = Signal(range(beats), reset_less=True)  # of the beat in the accumulator row
        ahead = Signal.like(last_beat, reset_less=True)  # the number of the next beat of this run
        last = Signal(reset_less=True)
        room = Signal(range(BEATS_AHEAD + 1), init=BEATS_AHEAD)
        full = Signal()  # room is 0

        ask = active & ~full
        granted = Signal()
        ended = Signal()
        m.d.comb += [
            self.scratchpad.valid.eq(ask & (space == Space.SCRATCHPAD)),
            self.scratchpad.row.eq(row),
            self.accumulator.valid.eq(ask & (space == Space.ACCUMULATOR)),
            self.accumulator.row.eq(row),
            self.accumulator.part.eq(index),
            granted.eq(ask & Mux(space, self.accumulator.ready, self.scratchpad.ready)),
            ended.eq(granted & last),
            starts.ready.eq(~active | ended),
        ]
        moved = queue.o.valid & queue.o.ready
        m.d.sync += [room.eq(room - granted + moved), full.eq(~moved & (full | (granted & (room == 1))))]
        with m.If(granted):
            m.d.sync += [ahead.eq(ahead + 1), last.eq(ahead == last_beat), index.eq(index + 1)]
            with m.If(~space | (index == beats - 1)):
                m.d.sync += [row.eq(row + stride), index.eq(0)]
        with m.If(starts.ready):
            m.d.sync += [active.eq(starts.valid), row.eq(starts.payload), index.eq(0)]
            m.d.sync += [ahead.eq(1), last.eq(last_beat == 0)]

        valid: Value = granted
        arriving: Value = space
        for k in range(SRAM_READ):
            valid_next = Signal(name=f"valid_{k}")
            arriving_next = Signal(name=f"arriving_{k}", reset_less=True)
            m.d.sync += [valid_next.eq(valid), arriving_next.eq(arriving)]
            valid, arriving = valid_next, arriving_next
        from_accumulator = arriving == Space.ACCUMULATOR
        m.d.comb += [
            queue.i.valid.eq(valid),
            queue.i.payload.eq(Mux(from_accumulator, self.accumulator.data, self.scratchpad.data)),
        ]
        m.d.comb += [self.idle.eq(~active), self.taken.eq(~active & (room == BEATS_AHEAD))]
        return m
