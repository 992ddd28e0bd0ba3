"""The smallest design an engine can run: registers, one read burst, one write burst, an interrupt."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out, Signature

SOURCE, DESTINATION, BEATS, START, STATUS, CYCLES, ERROR_AT, HANG_AT = range(0, 32, 4)


def axi_lite() -> Signature:
    return Signature(
        {
            "awaddr": Out(16),
            "awprot": Out(3),
            "awvalid": Out(1),
            "awready": In(1),
            "wdata": Out(32),
            "wstrb": Out(4),
            "wvalid": Out(1),
            "wready": In(1),
            "bresp": In(2),
            "bvalid": In(1),
            "bready": Out(1),
            "araddr": Out(16),
            "arprot": Out(3),
            "arvalid": Out(1),
            "arready": In(1),
            "rdata": In(32),
            "rresp": In(2),
            "rvalid": In(1),
            "rready": Out(1),
        }
    )


def axi4(bus_bytes: int) -> Signature:
    def address(prefix: str) -> dict[str, wiring.Member]:
        widths = {"id": 1, "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4}
        members = {f"{prefix}{name}": Out(width) for name, width in widths.items()}
        return members | {f"{prefix}valid": Out(1), f"{prefix}ready": In(1)}

    return Signature(
        {
            **address("aw"),
            "wdata": Out(8 * bus_bytes),
            "wstrb": Out(bus_bytes),
            "wlast": Out(1),
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(1),
            "bresp": In(2),
            "bvalid": In(1),
            "bready": Out(1),
            **address("ar"),
            "rid": In(1),
            "rdata": In(8 * bus_bytes),
            "rresp": In(2),
            "rlast": In(1),
            "rvalid": In(1),
            "rready": Out(1),
        }
    )


class Copier(wiring.Component):
    """Copies ``BEATS`` (1 to 16) beats from ``SOURCE`` to ``DESTINATION`` when ``START`` is written, then raises irq.

    Members are those of a chip. A write to ``STATUS`` lowers irq; its value on read is the worst AXI response of the
    last copy. A read of ``ERROR_AT`` answers SLVERR, one of ``HANG_AT`` never. ``CYCLES`` counts clock cycles.
    """

    s_axil: wiring.PureInterface
    m_axi: wiring.PureInterface
    irq: Signal

    def __init__(self, bus_bytes: int = 4) -> None:
        self.bus_bytes = bus_bytes
        super().__init__({"s_axil": In(axi_lite()), "m_axi": Out(axi4(bus_bytes)), "irq": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        host, bus = self.s_axil, self.m_axi
        source, destination, cycles = Signal(32), Signal(32), Signal(32)
        beats = Signal(range(17))
        status, start = Signal(2), Signal()
        m.d.sync += cycles.eq(cycles + 1)

        with m.If(~host.bvalid | host.bready):
            m.d.sync += host.bvalid.eq(0)
            with m.If(host.awvalid & host.wvalid & ~host.awready):
                m.d.comb += start.eq(host.awaddr == START)
                m.d.sync += [host.awready.eq(1), host.wready.eq(1), host.bvalid.eq(1)]
                with m.Switch(host.awaddr):
                    with m.Case(SOURCE):
                        m.d.sync += source.eq(host.wdata)
                    with m.Case(DESTINATION):
                        m.d.sync += destination.eq(host.wdata)
                    with m.Case(BEATS):
                        m.d.sync += beats.eq(host.wdata)
                    with m.Case(STATUS):
                        m.d.sync += self.irq.eq(0)
        with m.If(host.awready):
            m.d.sync += [host.awready.eq(0), host.wready.eq(0)]

        m.d.comb += host.arready.eq(~host.rvalid)
        with m.If(host.rvalid & host.rready):
            m.d.sync += host.rvalid.eq(0)
        with m.If(host.arvalid & host.arready):
            m.d.sync += [host.rvalid.eq(host.araddr != HANG_AT), host.rresp.eq((host.araddr == ERROR_AT) << 1)]
            with m.Switch(host.araddr):
                for offset, value in ((SOURCE, source), (DESTINATION, destination), (STATUS, status)):
                    with m.Case(offset):
                        m.d.sync += host.rdata.eq(value)
                with m.Default():
                    m.d.sync += host.rdata.eq(cycles)

        m.submodules.buffer = buffer = memory.Memory(shape=unsigned(8 * self.bus_bytes), depth=16, init=[])
        write, read = buffer.write_port(), buffer.read_port(domain="comb")
        index = Signal(4)
        size = (self.bus_bytes - 1).bit_length()
        m.d.comb += [
            bus.araddr.eq(source),
            bus.awaddr.eq(destination),
            *(signal.eq(beats - 1) for signal in (bus.arlen, bus.awlen)),
            *(signal.eq(size) for signal in (bus.arsize, bus.awsize)),
            *(signal.eq(1) for signal in (bus.arburst, bus.awburst)),
            *(signal.eq(0) for signal in (bus.arid, bus.awid, host.bresp)),  # else they would be inputs
            write.addr.eq(index),
            write.data.eq(bus.rdata),
            read.addr.eq(index),
            bus.wdata.eq(read.data),
            bus.wstrb.eq(~0),
            bus.wlast.eq(index == beats - 1),
        ]
        with m.FSM(name="copy"):
            with m.State("IDLE"), m.If(start):
                m.d.sync += [bus.arvalid.eq(1), status.eq(0)]
                m.next = "READ"
            with m.State("READ"):
                with m.If(bus.arready):
                    m.d.sync += bus.arvalid.eq(0)
                m.d.comb += [bus.rready.eq(1), write.en.eq(bus.rvalid)]
                with m.If(bus.rvalid):
                    m.d.sync += [index.eq(index + 1), status.eq(status | bus.rresp)]
                    with m.If(bus.rlast):
                        m.d.sync += [index.eq(0), bus.awvalid.eq(1)]
                        m.next = "WRITE"
            with m.State("WRITE"):
                with m.If(bus.awready):
                    m.d.sync += bus.awvalid.eq(0)
                m.d.comb += bus.wvalid.eq(1)
                with m.If(bus.wready):
                    m.d.sync += index.eq(index + 1)
                    with m.If(bus.wlast):
                        m.d.sync += index.eq(0)
                        m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += bus.bready.eq(1)
                with m.If(bus.bvalid):
                    m.d.sync += [self.irq.eq(1), status.eq(status | bus.bresp)]
                    m.next = "IDLE"
        return m
