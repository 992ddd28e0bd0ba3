"""On-chip RAM as device memory."""

from typing import Any

from amaranth import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.pages import PAGE_BYTES
from sley.fpga.memory.storage import BlockRam, Storage
from sley.hw.bus.axi_lite import AxiResponse
from sley.hw.memory.axi import axi4_signature


class BlockMemory(wiring.Component):
    """AXI4 target of on-chip RAM.

    Parameters
    ----------
    config : ChipConfig
        Of the bus.
    memory_bytes : int
        Size, a power of two and at least 4096.
    storage : Storage
        What the RAM is made of; ``BlockRam`` if not given.

    Members
    -------
    bus : In(axi4_signature(config))
        All outputs come from registers (``ready`` through a gate).

    Raises
    ------
    ValueError
        For a size that is not allowed.

    Rules
    -----
    1. It serves INCR bursts of full width that do not cross 4 KiB, one each way at a time, and returns the ID.
    2. Addresses beyond the end are answered with DECERR and change nothing.
    3. A write is answered when it has taken effect; a read whose address comes later sees it.
    4. With storage of a single port writes go first.

    Latency
    -------
    3 cycles from an address to its first data, 1 from the last beat to its response.

    Throughput
    ----------
    n beats in n + 1 cycles, each way at the same time.
    """

    bus: Any

    def __init__(self, config: ChipConfig, memory_bytes: int, storage: Storage = BlockRam) -> None:
        if memory_bytes < PAGE_BYTES or memory_bytes & (memory_bytes - 1) or memory_bytes > 1 << config.addr_bits:
            raise ValueError(
                f"memory_bytes is {memory_bytes}; it must be a power of two in {PAGE_BYTES}..{1 << config.addr_bits}"
            )
        self.memory_bytes = memory_bytes
        self._config = config
        self._storage = storage
        super().__init__({"bus": In(axi4_signature(config))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, bus_bytes = self.bus, self._config.bus_bytes
        lane_bits, address_bits = exact_log2(bus_bytes), exact_log2(self.memory_bytes)
        m.submodules.storage = storage = self._storage(self.memory_bytes // bus_bytes, 8 * bus_bytes)
        port = storage.port

        def behind(address: Signal) -> Any:
            return address[address_bits:].any() if address_bits < len(address) else Const(0)

        writing = Signal()
        accepted = Signal()  # a beat
        write_row = Signal.like(port.write_row, reset_less=True)
        write_id = Signal.like(bus.awid, reset_less=True)
        write_refused = Signal(reset_less=True)
        answer_refused = Signal(reset_less=True)
        m.d.comb += [
            bus.awready.eq(~writing),
            bus.wready.eq(writing & ~bus.bvalid),
            accepted.eq(bus.wvalid & bus.wready),
            bus.bresp.eq(Mux(answer_refused, AxiResponse.DECERR, AxiResponse.OKAY)),
            port.write_row.eq(write_row),
            port.write_data.eq(bus.wdata),
            port.strobe.eq(Mux(accepted & ~write_refused, bus.wstrb, 0)),
        ]
        with m.If(bus.bready):
            m.d.sync += bus.bvalid.eq(0)
        with m.If(bus.awready):
            m.d.sync += [
                writing.eq(bus.awvalid),
                write_row.eq(bus.awaddr[lane_bits:]),
                write_id.eq(bus.awid),
                write_refused.eq(behind(bus.awaddr)),
            ]
        with m.Elif(accepted):
            m.d.sync += write_row.eq(write_row + 1)
            with m.If(bus.wlast):
                m.d.sync += [writing.eq(0), bus.bvalid.eq(1), bus.bid.eq(write_id), answer_refused.eq(write_refused)]

        # A read goes through two registers: the RAM's own and its output. All of it stands while nobody takes a beat.
        reading = Signal()
        left = Signal.like(bus.arlen, reset_less=True)
        read_row = Signal.like(port.read_row, reset_less=True)
        read_id = Signal.like(bus.arid, reset_less=True)
        read_refused = Signal(reset_less=True)
        issue, moves = Signal(), Signal()
        beat = StructLayout({"id": len(bus.arid), "refused": 1, "last": 1})
        fetched = Signal(beat, reset_less=True)
        shown = Signal(beat, reset_less=True)
        fetched_valid = Signal()
        m.d.comb += [
            bus.arready.eq(~reading),
            moves.eq(~bus.rvalid | bus.rready),
            issue.eq(reading & moves),
            port.read.eq(issue),
            port.read_row.eq(read_row),
            port.advance.eq(moves),
            bus.rdata.eq(port.data),
            bus.rid.eq(shown.id),
            bus.rlast.eq(shown.last),
            bus.rresp.eq(Mux(shown.refused, AxiResponse.DECERR, AxiResponse.OKAY)),
        ]
        if self._storage.single_port:
            m.d.comb += issue.eq(reading & moves & ~accepted)
        with m.If(moves):
            m.d.sync += [
                fetched_valid.eq(issue),
                fetched.id.eq(read_id),
                fetched.refused.eq(read_refused),
                fetched.last.eq(left == 0),
                bus.rvalid.eq(fetched_valid),
                shown.eq(fetched),
            ]
        with m.If(bus.arready):
            m.d.sync += [
                reading.eq(bus.arvalid),
                left.eq(bus.arlen),
                read_row.eq(bus.araddr[lane_bits:]),
                read_id.eq(bus.arid),
                read_refused.eq(behind(bus.araddr)),
            ]
        with m.Elif(issue):
            m.d.sync += [reading.eq(left != 0), left.eq(left - 1), read_row.eq(read_row + 1)]
        return m
