"""The load unit: DMA from memory into the scratchpad and the accumulators."""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.abi.instructions import SEMAPHORES, Space
from sley.hw.core.list_addresses import list_port
from sley.hw.core.load.feed import LoadFeed, placed
from sley.hw.core.load.queues import FEED, PENDING, TARGET
from sley.hw.core.load.request import LoadRequest
from sley.hw.core.sram.memories import accumulator_write, scratchpad_write
from sley.hw.core.unit import unit_signature
from sley.hw.memory.run import Run, beat
from sley.hw.stream.buffer import StreamBuffer
from sley.hw.stream.count import step
from sley.hw.stream.fifo import StreamFIFO

COMMANDS_IN_FLIGHT = 16
"""Commands accepted and not finished, SET included, that always fit."""
RUNS_IN_FLIGHT = 64
"""Runs requested and not placed that always fit: hides a round trip of 64 cycles for runs of one beat."""


class LoadUnit(wiring.Component):
    """Reads runs of bytes from memory and places them in local rows, padded with the fill value.

    For each of COUNT2 slabs and each of rc + PAD_RUNS runs, CHUNKS rows are written, the first RUN_BYTES of them with
    bytes from memory (in the first rc runs), the rest with FILL. Each beat and each row of fill is one write. Where
    MEM_STRIDE is RUN_BYTES, a bus beat that runs of a slab share is read once. By a list, run r is at the address of
    its slab plus word r.

    Faults, in the order of the runs, and in each run in this order: BAD_PARAMETER (rc above 65535, with rc; RUN_BYTES
    above CHUNKS rows, with RUN_BYTES; a list beyond the accumulators, with LIST_ROW; a bad SET, with its parameter);
    BAD_ADDRESS, with the run's address; LOCAL_ADDRESS, with the row; BUS_ERROR, PAGE_FAULT or PERMISSION,
    with the run's address. Rows before the fault are written, later ones are
    not; of a run with a bus error, the beats before it are written.

    Three engines: the request side asks for the runs of up to COMMANDS_IN_FLIGHT commands ahead of the others; the
    feed takes the beats and counts rows; the target walks the local rows, in step with the feed or, behind rows that
    are permuted, a unit or two later. Each executes the SETs of what it needs, when their turn comes in its queue. All
    faults are raised in order.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    command, signal, fault, busy, retired, abort, clear : as of unit_signature
        The ports of a unit. Ops other than SET and LOAD must not come.
    gang : In(1)
        The block is of a gang: loads may be shared.
    run : Out(stream of Run), beat : In(stream of beat(config))
        To and from a reader of memory. Beats are always taken in the end, without help of the semaphores.
    scratchpad, accumulator : Out(write_port(...))
        One granule of the accumulators is one beat.
    list_read : Out(read_port(...))
        One lane of an accumulator row, a word of a list; on chips with ``gather``.

    Latency
    -------
    2 cycles from the acceptance of a command to its first run, LIST_LATENCY + 1 by a list, 1 from a beat to its write,
    1 from the last granted write to the signal.

    Throughput
    ----------
    One run, and one beat or row of fill, a cycle, without gaps between commands.

    Cost
    ----
    Two walkers, four queues (16 x 43, 16 x 54, 64 x 35, 16 x 16 bits), three stream registers; with ``gather``
    ``ListAddresses``.
    """

    command: stream.Interface
    signal: list[stream.Interface]
    fault: data.View
    busy: Signal
    retired: Signal
    abort: Signal
    clear: Signal
    gang: Signal
    run: stream.Interface
    beat: stream.Interface
    scratchpad: wiring.PureInterface
    accumulator: wiring.PureInterface

    def __init__(self, config: ChipConfig) -> None:
        self._config = c = config
        self._beats = c.beats_per_accumulator_row
        super().__init__(
            {
                **unit_signature().members,
                "gang": In(1),
                "run": Out(stream.Signature(Run)),
                "beat": In(stream.Signature(beat(c))),
                "scratchpad": Out(scratchpad_write(c)),
                "accumulator": Out(accumulator_write(c)),
                **list_port(c),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.request = request = LoadRequest(self._config)
        m.submodules.feed = feed = LoadFeed(self._config)
        m.submodules.signals = signals = StreamFIFO(SEMAPHORES, COMMANDS_IN_FLIGHT)
        m.submodules.feeds = feeds = StreamFIFO(FEED, COMMANDS_IN_FLIGHT)
        m.submodules.targets = targets = StreamFIFO(TARGET, COMMANDS_IN_FLIGHT)
        m.submodules.pending = pending = StreamFIFO(PENDING, RUNS_IN_FLIGHT)
        m.submodules.placed = writes = StreamBuffer(placed(self._config))
        # A queue this deep is block RAM, which answers late: what is decided by its output needs a register in between.
        m.submodules.oldest = oldest = StreamBuffer(PENDING)
        # Queues of parts of a command are never fuller than that of its signals, which leave last.
        for giver, taker in (
            (request.signal, signals.i),
            (request.feed, feeds.i),
            (request.target, targets.i),
            (request.pending, pending.i),
            (feeds.o, feed.job),
            (targets.o, feed.target),
            (pending.o, oldest.i),
            (oldest.o, feed.pending),
            (feed.o, writes.i),
        ):
            wiring.connect(m, giver, taker)
        for inner, outer in ((request.command, self.command), (request.run, self.run), (feed.beat, self.beat)):
            wiring.connect(m, inner, wiring.flipped(outer))
        if self._config.gather:
            wiring.connect(m, request.list_read, wiring.flipped(self.list_read))
        m.d.comb += [
            request.gang.eq(self.gang),
            request.curtail.eq(feed.curtail),
            feed.newest.eq(feeds.empty),
            self.fault.eq(feed.fault),
        ]
        for side in (request, feed):
            m.d.comb += [side.abort.eq(self.abort), side.clear.eq(self.clear)]
        self._write(m, writes.o, signals.o)
        empty = signals.empty & feeds.empty & pending.empty & ~oldest.o.valid
        m.d.comb += self.busy.eq(request.active | feed.busy | ~empty | writes.o.valid)
        return m

    def _write(self, m: Module, writes: stream.Interface, signals: StreamFIFO) -> None:
        """Writes to the memories; counts commands that have finished, and offers their signal sets."""
        item = writes.payload
        scratchpad, accumulator = self.scratchpad, self.accumulator
        writing = writes.valid & item.write
        m.d.comb += [
            scratchpad.valid.eq(writing & (item.space == Space.SCRATCHPAD)),
            scratchpad.row.eq(item.row),
            scratchpad.data.eq(item.data),
            scratchpad.enable.eq(-1),
            accumulator.valid.eq(writing & (item.space == Space.ACCUMULATOR)),
            accumulator.row.eq(item.row),
            accumulator.data.eq(item.data.replicate(self._beats)),
            accumulator.enable.eq(item.beats),
            writes.ready.eq(~item.write | Mux(item.space, accumulator.ready, scratchpad.ready)),
        ]
        finished = Signal(range(COMMANDS_IN_FLIGHT + 2))
        signal = self.signal[0]
        m.d.comb += [
            signal.valid.eq(finished != 0),
            signal.payload.eq(signals.payload),
            signals.ready.eq((signal.valid & signal.ready) | self.abort),
            self.retired.eq(signal.valid & signal.ready),
        ]
        ends = writes.valid & writes.ready & item.done
        m.d.sync += finished.eq(finished + step(ends, self.retired, len(finished)))
        with m.If(self.abort):
            m.d.sync += finished.eq(0)
