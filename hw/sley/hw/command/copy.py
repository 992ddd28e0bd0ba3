"""The engine behind COPY and FILL."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from sley.abi.config import ChipConfig
from sley.hw.command.fill import FillSource
from sley.hw.command.splitter import RunSplitter
from sley.hw.memory.run import Run, beat
from sley.hw.stream.fifo import StreamFIFO

CHUNK_BEATS = 16
"""Longest chunk; a chunk is written when all of it has arrived."""
BUFFER_BEATS = 2 * CHUNK_BEATS
"""Beats between reading and writing: one chunk arrives while another is written."""
MAX_CHUNKS = 255
"""Chunks asked for and not yet written."""


def chunk_beats(config: ChipConfig) -> int:
    """Beats of a chunk: a full burst, up to ``CHUNK_BEATS``."""
    return min(config.max_burst, CHUNK_BEATS)


class CopyEngine(wiring.Component):
    """Moves a range of bytes between any two alignments, or fills it.

    The range is cut into chunks that end at multiples of the chunk size in the destination, so that all writes but
    the first and the last are whole, aligned bursts. Each chunk is read as one run into the buffer and, once complete,
    written as one run. The memory reader keeps many chunks in flight; it asks for no more than it has room for, so
    that the answers never wait for the writes, and a write is asked for only when its data is here: the network can
    always drain.

    A read error stops the engine before the chunk it belongs to: nothing of that chunk or behind it is written. After
    a write error no further chunk is started. Either way everything in flight ends before ``done``.

    Members:

    * ``start`` with ``fill``, ``value``, ``src``, ``dst``, ``bytes`` (held until ``done``; 0 bytes are allowed).
    * ``done``: high for one cycle, everything written is acknowledged; ``failed`` with it: there was a bus error, and
      ``address`` is the start of the range (``src`` or ``dst``) that it belongs to. ``busy`` in between.
    * ``read``, ``beats``: a memory reader; ``write``, ``data``, ``writing``, ``write_error``: a memory writer.

    Throughput: one beat per cycle and direction. Cost: a small buffer, two splitters, small counters.
    """

    start: Signal
    fill: Signal
    value: Signal
    src: Signal
    dst: Signal
    bytes: Signal
    busy: Signal
    done: Signal
    failed: Signal
    address: Signal
    read: stream.Interface
    beats: stream.Interface
    write: stream.Interface
    data: stream.Interface
    writing: Signal
    write_error: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        self._chunk = chunk_beats(config) * config.bus_bytes
        super().__init__(
            {
                "start": In(1),
                "fill": In(1),
                "value": In(8),
                "src": In(32),
                "dst": In(32),
                "bytes": In(32),
                "busy": Out(1),
                "done": Out(1),
                "failed": Out(1),
                "address": Out(32),
                "read": Out(stream.Signature(Run)),
                "beats": In(stream.Signature(beat(config))),
                "write": Out(stream.Signature(Run)),
                "data": Out(stream.Signature(8 * config.bus_bytes)),
                "writing": In(1),
                "write_error": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chunk = self._chunk

        m.submodules.reads = reads = RunSplitter(chunk)
        m.submodules.writes = writes = RunSplitter(chunk)
        m.submodules.source = source = FillSource(self._config)
        buffered = data.StructLayout({"data": 8 * self._config.bus_bytes, "last": 1})
        m.submodules.buffer = buffer = StreamFIFO(buffered, BUFFER_BEATS)

        first = chunk - (self.dst & (chunk - 1))
        for splitter, address in ((reads, self.src), (writes, self.dst)):
            m.d.comb += [
                splitter.start.eq(self.start),
                splitter.range.addr.eq(address),
                splitter.range.bytes.eq(self.bytes),
                splitter.range.first.eq(first),
            ]

        flight = Signal(range(MAX_CHUNKS + 1))  # chunks asked for, with data that has not left the buffer
        complete = Signal(range(BUFFER_BEATS + 2))  # chunks in the buffer whose write was not asked for yet
        flowing = Signal(range(BUFFER_BEATS + 2))  # chunks whose write was asked for, with data left in the buffer
        read_failed, write_failed, chunk_error = Signal(), Signal(), Signal()
        failure = read_failed | write_failed  # an offer once made stands, nothing new is offered after a failure

        # Reading: the next chunk as soon as it is taken.
        asking, asking_on = Signal(), Signal()
        target_ready = Mux(self.fill, source.i.ready, self.read.ready)
        m.d.sync += asking_on.eq(asking & ~target_ready)
        m.d.comb += [
            asking.eq(reads.o.valid & (flight != MAX_CHUNKS) & (~failure | asking_on)),
            self.read.payload.eq(reads.o.payload),
            source.i.payload.eq(reads.o.payload),
            self.read.valid.eq(asking & ~self.fill),
            source.i.valid.eq(asking & self.fill),
            reads.o.ready.eq(asking & target_ready),
            source.value.eq(self.value),
        ]
        asked = asking & target_ready

        # Arriving: a chunk is complete with its last beat, unless it or one before it had an error.
        arriving = Signal(beat(self._config))
        m.d.comb += [
            buffer.i.payload.data.eq(arriving.data),
            buffer.i.payload.last.eq(arriving.last),
        ]
        for stream_, chosen in ((source.o, self.fill), (self.beats, ~self.fill)):
            with m.If(chosen):
                m.d.comb += [
                    arriving.eq(stream_.payload),
                    buffer.i.valid.eq(stream_.valid),
                    stream_.ready.eq(buffer.i.ready),
                ]
        bad = chunk_error | arriving.error.any()
        completed = Signal()
        with m.If(buffer.i.valid & buffer.i.ready):
            m.d.sync += chunk_error.eq(bad & ~arriving.last)
            with m.If(arriving.last):
                m.d.comb += completed.eq(~bad & ~read_failed)
                m.d.sync += read_failed.eq(read_failed | bad)

        # Writing: a run for each complete chunk, its data right behind; after an error the rest is dropped.
        ask_write, ask_write_on = Signal(), Signal()
        dropping = Signal()
        m.d.sync += ask_write_on.eq(ask_write & ~self.write.ready)
        m.d.comb += [
            ask_write.eq(writes.o.valid & (complete != 0) & (~write_failed | ask_write_on)),
            self.write.valid.eq(ask_write),
            self.write.payload.eq(writes.o.payload),
            writes.o.ready.eq(ask_write & self.write.ready),
            dropping.eq(((read_failed & (complete == 0)) | (write_failed & ~ask_write)) & (flowing == 0)),
            self.data.valid.eq(buffer.o.valid & (flowing != 0)),
            self.data.payload.eq(buffer.o.payload.data),
            buffer.o.ready.eq(Mux(flowing != 0, self.data.ready, dropping)),
        ]
        wrote = ask_write & self.write.ready
        leaving = buffer.o.valid & buffer.o.ready & buffer.o.payload.last
        m.d.sync += [
            flight.eq(flight + asked - leaving),
            complete.eq(complete + completed - wrote),
            flowing.eq(flowing + wrote - (leaving & ~dropping)),
        ]
        with m.If(self.write_error & self.busy):
            m.d.sync += write_failed.eq(1)

        # The end: nothing left to ask for, nothing in the buffer, nothing unacknowledged.
        rest = Signal()
        m.d.comb += rest.eq(Mux(failure, asking | ask_write, reads.busy | writes.busy))
        m.d.comb += self.done.eq(self.busy & ~rest & (flight == 0) & ~self.writing & ~self.write_error)
        m.d.comb += [self.failed.eq(failure), self.address.eq(Mux(read_failed, self.src, self.dst))]
        with m.If(self.done):
            m.d.sync += self.busy.eq(0)
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq(1),
                read_failed.eq(0),
                write_failed.eq(0),
                chunk_error.eq(0),
                complete.eq(0),
            ]
        return m
