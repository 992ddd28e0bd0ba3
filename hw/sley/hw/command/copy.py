"""The engine behind COPY and FILL."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.network import AccessError
from sley.abi.timing import CHUNK_BEATS, COPY_BUFFER_BEATS, MAX_CHUNKS
from sley.hw.command.fill import FillSource
from sley.hw.command.splitter import RunSplitter
from sley.hw.memory.run import Run, beat
from sley.hw.noc.access import ERROR_BITS
from sley.hw.stream.count import step
from sley.hw.stream.fifo import StreamFIFO


def chunk_beats(config: ChipConfig) -> int:
    """Beats of a chunk: a full burst, up to ``CHUNK_BEATS``."""
    return min(config.max_burst, CHUNK_BEATS)


class CopyEngine(wiring.Component):
    """Moves a range of bytes between any two alignments, or fills it.

    The range is cut into chunks that end at multiples of the chunk size in the destination, so that all writes but
    the first and the last are whole, aligned bursts. Each chunk is read as one run into the buffer and, once complete,
    written as one run. The memory reader keeps many chunks in flight; it requests no more than it has room for, so that
    the answers never wait for the writes, and a write is requested only when its data is here: the network can always
    drain.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    start : In(1)
        Begin. The engine is idle.
    src, dst, bytes : In(32), fill : In(1), value : In(8)
        The range, held from ``start`` until ``done``; 0 bytes are allowed. With ``fill`` every byte is ``value``.
    stop : In(1)
        Request no further chunk.
    requested : Out(1)
        A chunk is requested in this cycle.
    done : Out(1)
        High for one cycle: everything written is acknowledged.
    error : Out(ERROR_BITS), of_read : Out(1), left : Out(32)
        Valid with ``done``: the first ``AccessError`` of a read, or else of a write; which of them; without an error,
        the bytes that were not copied.
    read : Out(stream of Run), beats : In(stream of beat(config))
        To and from a memory reader.
    write : Out(stream of Run), data : Out(stream of bus_bytes), writing : In(1), write_error : In(ERROR_BITS)
        To and from a memory writer.

    Rules
    -----
    1. A read error stops the engine before the chunk it belongs to: nothing of that chunk or behind it is written.
    2. After a write error no further chunk is started.
    3. After ``stop`` every chunk that was requested is written, no other is.
    4. Everything in flight ends before ``done``, which comes a cycle later after chunks that were dropped.

    Throughput
    ----------
    One beat per cycle and direction. ``read`` and ``write`` are one LUT behind registers, but for ``read.valid``.

    Cost
    ----
    A small buffer, a splitter, an address with an adder, counters.
    """

    start: Signal
    fill: Signal
    value: Signal
    src: Signal
    dst: Signal
    bytes: Signal
    stop: Signal
    requested: Signal
    done: Signal
    error: Signal
    of_read: Signal
    left: Signal
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
                "stop": In(1),
                "requested": Out(1),
                "done": Out(1),
                "error": Out(ERROR_BITS),
                "of_read": Out(1),
                "left": Out(32),
                "read": Out(stream.Signature(Run)),
                "beats": In(stream.Signature(beat(config))),
                "write": Out(stream.Signature(Run)),
                "data": Out(stream.Signature(8 * config.bus_bytes)),
                "writing": In(1),
                "write_error": In(ERROR_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chunk = self._chunk

        m.submodules.reads = reads = RunSplitter(chunk)
        m.submodules.source = source = FillSource(self._config, chunk)
        buffered = data.StructLayout({"data": 8 * self._config.bus_bytes, "last": 1})
        m.submodules.buffer = buffer = StreamFIFO(buffered, COPY_BUFFER_BEATS)

        first = chunk - (self.dst & (chunk - 1))
        m.d.comb += [
            reads.start.eq(self.start),
            reads.range.addr.eq(self.src),
            reads.range.bytes.eq(self.bytes),
            reads.range.first.eq(first),
        ]

        unwritten = Signal(range(MAX_CHUNKS + 1))  # chunks asked for whose write was not asked for yet
        only = Signal()  # there is one
        complete = Signal(range(COPY_BUFFER_BEATS + 2))  # those of them that are in the buffer
        some_complete = Signal()
        flowing = Signal(range(COPY_BUFFER_BEATS + 2))  # chunks whose write was asked for, with data left in the buffer
        flows = Signal()  # there are some
        read_error, write_error = Signal(ERROR_BITS), Signal(ERROR_BITS)
        chunk_error = Signal(ERROR_BITS)
        read_failed, write_failed = read_error.any(), write_error.any()
        busy, stopped = Signal(), Signal()
        failure = read_failed | write_failed | stopped  # an offer once made stands, nothing new is offered

        # Reading: the next chunk as soon as it is taken.
        requesting, requesting_on = Signal(), Signal()
        target_ready = Mux(self.fill, source.i.ready, self.read.ready)
        m.d.sync += requesting_on.eq(requesting & ~target_ready)
        m.d.comb += [
            requesting.eq(reads.o.valid & (unwritten != MAX_CHUNKS) & (~(failure | self.stop) | requesting_on)),
            self.read.payload.eq(reads.o.payload),
            source.i.payload.eq(reads.o.payload),
            self.read.valid.eq(requesting & ~self.fill),
            source.i.valid.eq(requesting & self.fill),
            reads.o.ready.eq(requesting & target_ready),
            source.value.eq(self.value),
        ]
        m.d.comb += self.requested.eq(requesting & target_ready)
        with m.If(self.stop):
            m.d.sync += stopped.eq(1)

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
        bad = Signal(ERROR_BITS)
        m.d.comb += bad.eq(Mux(chunk_error.any(), chunk_error, arriving.error))
        completed = Signal()
        with m.If(buffer.i.valid & buffer.i.ready):
            m.d.sync += chunk_error.eq(Mux(arriving.last, AccessError.NONE, bad))
            with m.If(arriving.last):
                m.d.comb += completed.eq(~bad.any() & ~read_failed)
                with m.If(~read_failed):
                    m.d.sync += read_error.eq(bad)

        # Writing: a run for each complete chunk, its data right behind; after an error the rest is dropped. All chunks
        # but the one asked for last end where the chunk size says.
        bits = exact_log2(chunk)
        target = Signal(32, reset_less=True)
        newest = Signal.like(reads.o.payload.bytes[: bits + 1], name="newest", reset_less=True)  # bytes of that one
        room = Signal.like(newest, name="room", reset_less=True)  # bytes up to the next multiple of the chunk size
        request_write, request_write_on = Signal(), Signal()
        dropping = Signal()  # once it is, until the next start
        dropped = Signal()  # a chunk was, in the cycle before
        m.d.sync += request_write_on.eq(request_write & ~self.write.ready)
        m.d.comb += [
            request_write.eq(some_complete & (~write_failed | request_write_on)),
            self.write.valid.eq(request_write),
            self.write.payload.addr.eq(target),
            self.write.payload.bytes.eq(Mux(only, newest, room)),
            self.data.valid.eq(buffer.o.valid & flows),
            self.data.payload.eq(buffer.o.payload.data),
            buffer.o.ready.eq(Mux(flows, self.data.ready, dropping)),
        ]
        write_requested = request_write & self.write.ready
        leaving = buffer.o.valid & buffer.o.ready & buffer.o.payload.last
        retired = write_requested | dropped
        m.d.sync += [
            dropping.eq(((read_failed & ~some_complete) | (write_failed & ~request_write)) & ~flows),
            dropped.eq(leaving & ~flows),
            complete.eq(complete + step(completed, write_requested, len(complete))),
            some_complete.eq(completed | (some_complete & ~(write_requested & (complete == 1)))),
            flows.eq(write_requested | (flows & ~(leaving & (flowing == 1)))),
        ]
        with m.If(write_requested ^ (leaving & flows)):
            m.d.sync += flowing.eq(flowing + step(write_requested, ~write_requested, len(flowing)))
        # The answer to a read comes latest of all: it decides whether this changes, not how.
        with m.If(self.requested ^ retired):
            m.d.sync += [
                unwritten.eq(unwritten + Cat(1, retired.replicate(len(unwritten) - 1))),
                only.eq(Mux(retired, unwritten == 2, unwritten == 0)),
            ]
        with m.If(self.requested):
            m.d.sync += newest.eq(reads.o.payload.bytes)
        with m.If(write_requested):
            m.d.sync += [target.eq(Cat(C(0, bits), target[bits:] + 1)), room.eq(chunk)]
        with m.If(self.write_error.any() & ~write_failed):
            m.d.sync += write_error.eq(self.write_error)

        # The end: nothing left to ask for, nothing in the buffer, nothing unacknowledged.
        rest = Signal()
        m.d.comb += rest.eq(Mux(failure, requesting_on | request_write, reads.busy))
        m.d.comb += self.done.eq(busy & ~rest & (unwritten == 0) & ~flows & ~self.writing)
        m.d.comb += [
            self.error.eq(Mux(read_failed, read_error, write_error)),
            self.of_read.eq(read_failed),
            self.left.eq(reads.left),
        ]
        with m.If(self.done):
            m.d.sync += busy.eq(0)
        with m.If(self.start):
            m.d.sync += [
                busy.eq(1),
                stopped.eq(0),
                read_error.eq(AccessError.NONE),
                write_error.eq(AccessError.NONE),
                chunk_error.eq(AccessError.NONE),
                complete.eq(0),
                some_complete.eq(0),
                target.eq(self.dst),
                room.eq(first),
            ]
        return m
