"""The SDRAM of a board as device memory."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect

from sley.abi.config import ChipConfig
from sley.abi.pages import PAGE_BYTES
from sley.fpga.memory.sdram.part import COMMON_32M, WORD_BYTES, SdramPart
from sley.fpga.memory.sdram.pins import sdram_signature
from sley.fpga.memory.sdram.scheduler import READ, WRITE, Scheduler
from sley.fpga.memory.sdram.timing import sdram_timing
from sley.fpga.memory.sdram.walk import BurstWalk, burst_layout
from sley.hw.bus.axi_lite import AxiResponse
from sley.hw.memory.axi import ID_BITS, axi4_signature
from sley.hw.stream.buffer import StreamBuffer
from sley.hw.stream.fifo import StreamFIFO

LONGEST_BURST = 8
"""Words that one column command can move."""
READ_BEATS = 16
"""Beats that are read and not yet accepted, at most."""


class SdramMemory(wiring.Component):
    """AXI4 target in a 16-bit SDRAM.

    Attributes: ``memory_bytes``, ``timing``.

    Parameters
    ----------
    config : ChipConfig
        Of the bus.
    clock_hz : int
        The clock of design and part.
    part : SdramPart
        What is on the board; the common part if not given.
    memory_bytes : int
        What is used of it, a power of two and at least 4096; all of it if not given.

    Members
    -------
    bus : In(axi4_signature(config))
        The memory bus.
    sdram : Out(sdram_signature(part.row_bits))
        The part. A word of a read has to be on ``sdram.data`` CAS latency + 1 cycles after its command.

    Raises
    ------
    ValueError
        For a size that is not allowed, and for a clock that the part cannot have.

    Rules
    -----
    1. It serves INCR bursts of full width that do not cross 4 KiB and returns the ID; reads in their order, and writes
       in theirs.
    2. Addresses beyond the end are answered with DECERR and change nothing.
    3. A write is answered when it has taken effect; a read whose address comes later sees it.
    4. It may accept write data before their address.

    Latency
    -------
    From the address of a read whose row is open to its first beat of w words: CAS latency + w + 6 cycles. All outputs
    come from registers (``ready`` through a gate).

    Throughput
    ----------
    A word a cycle within a row.
    """

    bus: Any
    sdram: Any

    def __init__(
        self, config: ChipConfig, clock_hz: int, part: SdramPart = COMMON_32M, memory_bytes: int | None = None
    ) -> None:
        self.memory_bytes = size = part.memory_bytes if memory_bytes is None else memory_bytes
        highest = min(part.memory_bytes, 1 << config.addr_bits)
        if size < PAGE_BYTES or size & (size - 1) or size > highest:
            raise ValueError(f"memory_bytes is {size}; it must be a power of two in {PAGE_BYTES}..{highest}")
        self._config, self._part = config, part
        self._words = config.bus_bytes // WORD_BYTES
        self.timing = sdram_timing(part, clock_hz, min(self._words, LONGEST_BURST))
        super().__init__({"bus": In(axi4_signature(config)), "sdram": Out(sdram_signature(part.row_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sdram = self.sdram
        m.submodules.scheduler = scheduler = Scheduler(self._part, self.timing)
        m.d.comb += [getattr(sdram, name).eq(getattr(scheduler, name)) for name in ("command", "bank", "address")]
        self._read(m, self._walk(m, "ar", scheduler.requesters[READ]), scheduler.requesters[READ])
        self._write(m, self._walk(m, "aw", scheduler.requesters[WRITE]), scheduler.requesters[WRITE])
        with m.If(scheduler.initialising):
            m.d.sync += sdram.mask.eq(~0)
        return m

    def _walk(self, m: Module, channel: str, requester: Any) -> BurstWalk:
        """From an address channel to a requester."""
        config, bus = self._config, self.bus
        m.submodules[channel] = buffer = StreamBuffer(burst_layout(config.addr_bits))
        m.submodules[f"{channel}_walk"] = walk = BurstWalk(
            self._part, config.addr_bits, config.bus_bytes, self.timing.burst, self.memory_bytes
        )
        connect(m, buffer.o, walk.bursts)
        connect(m, walk.head, requester.head)
        connect(m, walk.ahead, requester.ahead)
        m.d.comb += [
            buffer.i.valid.eq(getattr(bus, f"{channel}valid")),
            getattr(bus, f"{channel}ready").eq(buffer.i.ready),
            *(buffer.i.payload[name].eq(getattr(bus, channel + name)) for name in ("addr", "len", "id")),
            requester.column.eq(walk.column),
            walk.step.eq(requester.issue),
        ]
        return walk

    def _read(self, m: Module, walk: BurstWalk, requester: Any) -> None:
        bus, timing = self.bus, self.timing
        beat = data.StructLayout({"data": 8 * self._config.bus_bytes, "id": ID_BITS, "refused": 1, "last": 1})
        m.submodules.beats = beats = StreamFIFO(beat, READ_BEATS)
        outstanding = Signal(range(READ_BEATS + 1))  # beats that are read and not accepted
        room = Signal(init=1)  # for another
        accepted = Signal()
        started = Signal()
        m.d.comb += [
            accepted.eq(bus.rvalid & bus.rready),
            started.eq(requester.issue & walk.final),
            requester.ready.eq(walk.head.valid & room),
        ]
        with m.If(started ^ accepted):
            m.d.sync += [
                outstanding.eq(Mux(accepted, outstanding - 1, outstanding + 1)),
                room.eq(accepted | (outstanding != READ_BEATS - 1)),
            ]

        # The tag of a column burst is delayed with it. Its first word arrives when that is at ``first``.
        tag = data.StructLayout({"id": ID_BITS, "refused": 1, "last": 1})
        first = timing.cas + 1
        in_flight = Signal(first + timing.burst)
        final_in_flight = Signal(len(in_flight), reset_less=True)
        tags = Signal(data.ArrayLayout(tag, len(in_flight)), reset_less=True)
        collected = Signal(8 * (self._config.bus_bytes - WORD_BYTES), reset_less=True)
        m.d.sync += [
            in_flight.eq(Cat(requester.issue, in_flight)),
            final_in_flight.eq(Cat(walk.final, final_in_flight)),
            tags.eq(Cat(walk.id, walk.head.refused, walk.last, tags)),
        ]
        with m.If(in_flight[first:].any()):
            m.d.sync += collected.eq(Cat(collected, self.sdram.data)[8 * WORD_BYTES :])
        payload = beats.i.payload
        m.d.comb += [
            beats.i.valid.eq(in_flight[-1] & final_in_flight[-1]),
            payload.data.eq(Cat(collected, self.sdram.data)),
            payload.id.eq(tags[-1].id),
            payload.refused.eq(tags[-1].refused),
            payload.last.eq(tags[-1].last),
            bus.rvalid.eq(beats.o.valid),
            beats.o.ready.eq(bus.rready),
            bus.rdata.eq(beats.o.payload.data),
            bus.rid.eq(beats.o.payload.id),
            bus.rlast.eq(beats.o.payload.last),
            bus.rresp.eq(Mux(beats.o.payload.refused, AxiResponse.DECERR, AxiResponse.OKAY)),
        ]

    def _write(self, m: Module, walk: BurstWalk, requester: Any) -> None:
        bus, timing, sdram, width = self.bus, self.timing, self.sdram, self._config.bus_bytes
        layout = data.StructLayout({"data": 8 * width, "strb": width})
        m.submodules.data = beats = StreamBuffer(layout)
        m.submodules.responses = responses = StreamBuffer(data.StructLayout({"id": ID_BITS, "refused": 1}))
        m.d.comb += [
            beats.i.valid.eq(bus.wvalid),
            bus.wready.eq(beats.i.ready),
            beats.i.payload.data.eq(bus.wdata),
            beats.i.payload.strb.eq(bus.wstrb),
            beats.o.ready.eq(requester.issue & walk.first),
            requester.ready.eq(walk.head.valid & (beats.o.valid | ~walk.first) & (responses.i.ready | ~walk.last)),
            responses.i.valid.eq(requester.issue & walk.last),
            responses.i.payload.id.eq(walk.id),
            responses.i.payload.refused.eq(walk.head.refused),
            bus.bvalid.eq(responses.o.valid),
            responses.o.ready.eq(bus.bready),
            bus.bid.eq(responses.o.payload.id),
            bus.bresp.eq(Mux(responses.o.payload.refused, AxiResponse.DECERR, AxiResponse.OKAY)),
        ]

        # The words of a beat are driven one after another, the first with its command.
        pending_words = Signal(layout, reset_less=True)
        words_left = Signal(range(timing.burst))
        drive = Signal(reset_less=True)
        beat = Signal(layout)
        starts = requester.issue
        m.d.comb += beat.eq(Mux(starts & walk.first, beats.o.payload, pending_words))
        m.d.sync += [sdram.mask.eq(0), sdram.drive.eq(0)]
        with m.If(starts | (words_left != 0)):
            m.d.sync += [
                sdram.out.eq(beat.data),
                sdram.mask.eq(~beat.strb[:WORD_BYTES]),
                sdram.drive.eq(Mux(starts, ~walk.head.refused, drive)),
                pending_words.data.eq(beat.data >> 8 * WORD_BYTES),
                pending_words.strb.eq(beat.strb >> WORD_BYTES),
                words_left.eq(Mux(starts, timing.burst - 1, words_left - 1)),
            ]
        with m.If(starts):
            m.d.sync += drive.eq(~walk.head.refused)
