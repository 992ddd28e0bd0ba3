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
"""Beats that are read and not yet taken, at most."""


class SdramMemory(wiring.Component):
    """AXI4 target in a 16-bit SDRAM.

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

    Members: ``bus``; ``sdram``: the part. Attributes: ``memory_bytes``, ``timing``. A word of a read has to be on
    ``sdram.data`` CAS latency + 1 cycles after its command.

    Serves INCR bursts of full width that do not cross 4 KiB and returns the ID; reads in their order, and writes in
    theirs. Addresses behind the end are answered with DECERR and change nothing. A write is answered when it has taken
    effect; a read whose address comes later sees it. It may take write data before their address.
    All outputs come from registers (``ready`` through a gate). Latency of a read whose row is open, from its address to
    its first beat of w words: CAS latency + w + 6 cycles. Throughput: a word a cycle within a row.
    Raises ``ValueError`` for a clock that the part cannot have.
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
        with m.If(scheduler.asleep):
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
        waiting = Signal(range(READ_BEATS + 1))  # beats that are read and not taken
        room = Signal(init=1)  # for another
        taken = Signal()
        begun = Signal()
        m.d.comb += [
            taken.eq(bus.rvalid & bus.rready),
            begun.eq(requester.issue & walk.final),
            requester.able.eq(walk.head.valid & room),
        ]
        with m.If(begun ^ taken):
            m.d.sync += [
                waiting.eq(Mux(taken, waiting - 1, waiting + 1)),
                room.eq(taken | (waiting != READ_BEATS - 1)),
            ]

        # What a column burst is for goes along with it. Its first word is there when it has come to ``first``.
        about = data.StructLayout({"id": ID_BITS, "refused": 1, "last": 1})
        first = timing.cas + 1
        coming = Signal(first + timing.burst)
        ending = Signal(len(coming), reset_less=True)
        abouts = Signal(data.ArrayLayout(about, len(coming)), reset_less=True)
        gathered = Signal(8 * (self._config.bus_bytes - WORD_BYTES), reset_less=True)
        m.d.sync += [
            coming.eq(Cat(requester.issue, coming)),
            ending.eq(Cat(walk.final, ending)),
            abouts.eq(Cat(walk.id, walk.head.refused, walk.last, abouts)),
        ]
        with m.If(coming[first:].any()):
            m.d.sync += gathered.eq(Cat(gathered, self.sdram.data)[8 * WORD_BYTES :])
        payload = beats.i.payload
        m.d.comb += [
            beats.i.valid.eq(coming[-1] & ending[-1]),
            payload.data.eq(Cat(gathered, self.sdram.data)),
            payload.id.eq(abouts[-1].id),
            payload.refused.eq(abouts[-1].refused),
            payload.last.eq(abouts[-1].last),
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
        m.submodules.answers = answers = StreamBuffer(data.StructLayout({"id": ID_BITS, "refused": 1}))
        m.d.comb += [
            beats.i.valid.eq(bus.wvalid),
            bus.wready.eq(beats.i.ready),
            beats.i.payload.data.eq(bus.wdata),
            beats.i.payload.strb.eq(bus.wstrb),
            beats.o.ready.eq(requester.issue & walk.first),
            requester.able.eq(walk.head.valid & (beats.o.valid | ~walk.first) & (answers.i.ready | ~walk.last)),
            answers.i.valid.eq(requester.issue & walk.last),
            answers.i.payload.id.eq(walk.id),
            answers.i.payload.refused.eq(walk.head.refused),
            bus.bvalid.eq(answers.o.valid),
            answers.o.ready.eq(bus.bready),
            bus.bid.eq(answers.o.payload.id),
            bus.bresp.eq(Mux(answers.o.payload.refused, AxiResponse.DECERR, AxiResponse.OKAY)),
        ]

        # The words of a beat leave one after another, the first with its command.
        rest = Signal(layout, reset_less=True)
        left = Signal(range(timing.burst))
        drive = Signal(reset_less=True)
        beat = Signal(layout)
        begins = requester.issue
        m.d.comb += beat.eq(Mux(begins & walk.first, beats.o.payload, rest))
        m.d.sync += [sdram.mask.eq(0), sdram.drive.eq(0)]
        with m.If(begins | (left != 0)):
            m.d.sync += [
                sdram.out.eq(beat.data),
                sdram.mask.eq(~beat.strb[:WORD_BYTES]),
                sdram.drive.eq(Mux(begins, ~walk.head.refused, drive)),
                rest.data.eq(beat.data >> 8 * WORD_BYTES),
                rest.strb.eq(beat.strb >> WORD_BYTES),
                left.eq(Mux(begins, timing.burst - 1, left - 1)),
            ]
        with m.If(begins):
            m.d.sync += drive.eq(~walk.head.refused)
